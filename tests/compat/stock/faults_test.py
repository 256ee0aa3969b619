"""Stock programs and the checker on a network that loses, repeats, reorders and damages packets:
all complete, and all data are right (docs/faults.md)."""

import itertools
import unittest

from tests.compat import nodes
from tests.compat.stock import cases

# Each end does this to what it sends.
NETWORKS = (
    "drop dir=tx p=0.001",
    "drop dir=tx p=0.01",
    "drop dir=tx p=0.05",
    "duplicate dir=tx p=0.01",
    "reorder dir=tx p=0.01",
    "corrupt dir=tx p=0.001",
    "drop dir=tx p=0.01; duplicate dir=tx p=0.01; reorder dir=tx p=0.01; corrupt dir=tx p=0.001",
)
PROGRAMS = {
    "ib_write_bw": ("-s", 65536, "-n", 200),
    "ib_read_bw": ("-s", 65536, "-n", 200),
    "ib_send_bw": ("-s", 65536, "-n", 200),
    "ib_atomic_bw": ("-n", 1000),
}
# The checker's ways, of which only the first is taken in a hurry. Each has another seed of faults.
WAYS = (("--brief",), (), ("--srq",), ("--odp",), ("--extended", "--events"),
        ("--threads", 2, "--qps", 4, "--brief"))
RETRY_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR


class Faults(cases.InWorld):
    def run_both(self, command, rule, client_only=False, port_option="-p", seed=1):
        port = nodes.free_port()
        command = [*map(str, command), port_option, str(port)]
        runner = self.runner(capture=False, patience=120)
        faults = ("--fault", rule, "--seed", str(seed))
        if client_only:
            with runner.started(self.world.server, command, "server") as (process, end):
                self.assertTrue(cases.pair.wait_for_listener(process, port, runner.patience))
                with runner.started(self.world.client, [*command, self.world.server.address],
                                    "client", faults) as (_, end_client):
                    client = end_client()
                cases.pair.linger(process, 5)
                return cases.pair.Both(end(), client)
        return runner.both(command, [*command, self.world.server.address], port, faults)

    def assert_in_force(self, rules, both):
        for rule in rules.split("; "):
            self.assertIn(rule, both.client.output)  # the summary at the end

    def gid(self):
        return self.world.server.gids["v4"]

    def test_programs_complete(self):
        networks = NETWORKS if cases.SLOW else NETWORKS[1:2]
        for rule, program in itertools.product(networks, PROGRAMS):
            with self.subTest(program=program, rule=rule):
                both = self.run_both([program, "-d", "rxe0", "-F", "-x", self.gid(),
                                      *PROGRAMS[program]], rule)
                self.assert_both_work(both)
                self.assert_in_force(rule, both)

    def test_data_are_right(self):
        networks = NETWORKS if cases.SLOW else NETWORKS[1:2]
        ways = WAYS if cases.SLOW else WAYS[:1]
        checker = nodes.product()[0] + "/tests/verbs_checker"
        mtu = min(1024, self.world.mtu)
        for rule, (seed, way) in itertools.product(networks, enumerate(ways, 1)):
            with self.subTest(rule=rule, way=way):
                both = self.run_both([checker, "--gid", self.gid(), "--mtu", mtu, "--lossy", *way],
                                     rule, port_option="--port", seed=seed)
                self.assert_both_work(both)
                self.assertIn("cases", both.client.output)
                self.assert_in_force(rule, both)

    def test_unreliable_transports_are_refused(self):
        checker = nodes.product()[0] + "/tests/verbs_checker"
        for transport in ("uc", "ud"):
            finished = self.runner(capture=False).alone(
                [checker, "--lossy", "--transport", transport])
            self.assertEqual(finished.status, 1, finished)
            self.assertIn("--lossy is for RC", finished.output)

    # The example of docs/faults.md.
    def test_the_third_read_fails(self):
        both = self.run_both(["ib_read_bw", "-d", "rxe0", "-F", "-x", self.gid(), "-s", 1024,
                              "-n", 10, "-Q", 1], "drop dir=tx opcode=READ unique=3",
                             client_only=True)
        self.assertNotEqual(both.client.status, 0, both)
        self.assertRegex(both.client.output, rf"(?i)status:? {RETRY_EXCEEDED}\b", both)


if __name__ == "__main__":
    unittest.main()
