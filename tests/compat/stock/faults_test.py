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
)
PROGRAMS = {
    "ib_write_bw": ("-s", 65536, "-n", 200),
    "ib_read_bw": ("-s", 65536, "-n", 200),
    "ib_send_bw": ("-s", 65536, "-n", 200),
    "ib_atomic_bw": ("-n", 1000),
}
RETRY_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR


class Faults(cases.InWorld):
    def run_both(self, command, rule, client_only=False, port_option="-p"):
        port = nodes.free_port()
        command = [*map(str, command), port_option, str(port)]
        runner = self.runner(capture=False, patience=120)
        faults = ("--fault", rule, "--seed", "1")
        if client_only:
            with runner.started(self.world.server, command, "server") as (process, end):
                self.assertTrue(cases.pair.wait_for_listener(process, port, runner.patience))
                with runner.started(self.world.client, [*command, self.world.server.address],
                                    "client", faults) as (_, end_client):
                    client = end_client()
                cases.pair.linger(process, 5)
                return cases.pair.Both(end(), client)
        return runner.both(command, [*command, self.world.server.address], port, faults)

    def gid(self):
        return self.world.server.gids["v4"]

    def test_programs_complete(self):
        networks = NETWORKS if cases.SLOW else NETWORKS[1:2]
        for rule, program in itertools.product(networks, PROGRAMS):
            with self.subTest(program=program, rule=rule):
                both = self.run_both([program, "-d", "rxe0", "-F", "-x", self.gid(),
                                      *PROGRAMS[program]], rule)
                self.assert_both_work(both)
                self.assertIn(rule, both.client.output)  # the summary: it was in force

    def test_data_are_right(self):
        for rule in NETWORKS if cases.SLOW else NETWORKS[1:2]:
            with self.subTest(rule=rule):
                checker = nodes.product()[0] + "/tests/verbs_checker"
                both = self.run_both([checker, "--gid", self.gid(), "--mtu",
                                      min(1024, self.world.mtu), "--brief", "--lossy"],
                                     rule, port_option="--port")
                self.assert_both_work(both)
                self.assertIn("cases", both.client.output)

    # The example of docs/faults.md.
    def test_the_third_read_fails(self):
        both = self.run_both(["ib_read_bw", "-d", "rxe0", "-F", "-x", self.gid(), "-s", 1024,
                              "-n", 10, "-Q", 1], "drop dir=tx opcode=READ unique=3",
                             client_only=True)
        self.assertNotEqual(both.client.status, 0, both)
        self.assertRegex(both.client.output, rf"(?i)status:? {RETRY_EXCEEDED}\b", both)


if __name__ == "__main__":
    unittest.main()
