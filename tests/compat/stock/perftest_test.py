"""perftest's bandwidth and latency tools."""

import itertools
import re
import struct
import unittest

from tests.compat import captures
from tests.compat.stock import cases

BANDWIDTH = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw")
LATENCY = ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat")
INLINE = ("ib_send_bw", "ib_write_bw", "ib_send_lat", "ib_write_lat")
# perftest has no events for WRITEs.
EVENTS = ("ib_send_bw", "ib_read_bw", "ib_send_lat", "ib_read_lat")
# It says this when it could not find out how fast the clock ticks, and then prints no row.
UNSURE_CLOCK = "Correlation coefficient"
# Its standard deviation is the root of a difference, which rounding may make negative.
NUMBER = r"(?:[\d.]+|-nan)"
OLD = "--use_old_post_send"
SEND_ONLY = 0x04  # of every service
# As perftest writes GIDs: ::ffff:224.1.2.3 and ff0e::2:c985:1.
GROUPS = {"v4": "0:0:0:0:0:0:0:0:0:0:255:255:224:1:2:3",
          "v6": "255:14:0:0:0:0:0:0:0:0:0:2:201:133:0:1"}


class Perftest(cases.InWorld):
    def measure(self, program, *arguments, capture=True, runner=None):
        """The rows of numbers that the client printed. Each costs perftest two seconds, in which it
        finds out how fast the clock ticks."""
        gid = self.world.server.gids[sorted(self.world.server.gids)[0]]
        arguments = list(arguments)
        if "-x" not in arguments:
            arguments += ["-x", gid]
        for _ in range(3):
            both = self.talk(program, "-d", "rxe0", "-F", *arguments, capture=capture,
                             runner=runner)
            if UNSURE_CLOCK not in both.client.output:
                break
        rows = re.findall(rf"(?m)^ *(\d+)(?:[ \t]+[\d.]+){{3}}(?:[ \t]+{NUMBER})*[ \t]*$",
                          both.client.output)
        self.assertTrue(rows, both)
        return rows

    def test_bandwidth(self):
        for user, program in itertools.product(self.users, BANDWIDTH):
            with self.subTest(program=program, user=user):
                size = [] if "atomic" in program else ["-s", 65536]
                self.measure(program, "-n", 20, *size, runner=self.runner(user))

    def test_latency(self):
        for program in LATENCY:
            with self.subTest(program=program):
                self.measure(program, "-n", 50)

    def test_all_sizes(self):
        programs = [name for name in BANDWIDTH + LATENCY if "atomic" not in name]
        for program in programs if cases.SLOW else ("ib_write_bw",):
            with self.subTest(program=program):
                runner = self.runner(capture=False, patience=240)
                rows = self.measure(program, "-a", "-n", 5, runner=runner)
                self.assertEqual(rows, [str(1 << i) for i in range(1, 24)])

    def test_many_queue_pairs_in_both_directions(self):
        for program in BANDWIDTH:
            size = [] if "atomic" in program else ["-s", 5000]
            with self.subTest(program=program):
                self.measure(program, "-n", 10, "-q", 16, "-b", *size)

    def test_events(self):
        for program in EVENTS if cases.SLOW else ("ib_send_bw", "ib_read_lat"):
            with self.subTest(program=program):
                self.measure(program, "-n", 50, "-e", "-s", 4096)

    def test_inline(self):
        programs = INLINE if cases.SLOW else ("ib_send_lat", "ib_write_bw")
        for program, old in itertools.product(programs, ([], [OLD])):
            with self.subTest(program=program, old=old):
                self.measure(program, "-n", 50, "-I", 64, "-s", 64, *old)

    def test_old_post_send(self):
        for program in BANDWIDTH + LATENCY if cases.SLOW else ("ib_send_bw", "ib_read_bw"):
            with self.subTest(program=program):
                self.measure(program, "-n", 20, OLD)

    def test_path_mtus_and_gids(self):
        for mtu in self.mtus if cases.SLOW else (self.mtus[0], self.mtus[-1]):
            with self.subTest(mtu=mtu):
                self.measure("ib_write_bw", "-n", 5, "-m", mtu, "-s", 3 * mtu + 1)
        for kind, gid in self.world.server.gids.items():
            with self.subTest(gid=kind):
                self.measure("ib_read_bw", "-n", 5, "-x", gid, "-s", 10000)

    def test_atomic_operations(self):
        for program, operation in itertools.product(("ib_atomic_bw", "ib_atomic_lat"),
                                                    ("CMP_AND_SWAP", "FETCH_AND_ADD")):
            with self.subTest(program=program, operation=operation):
                self.measure(program, "-n", 50, "-A", operation)

    def test_unreliable_transports(self):
        for program, arguments in (
                ("ib_send_bw", ("-c", "UC", "-s", 3000)), ("ib_write_bw", ("-c", "UC", "-s", 3000)),
                ("ib_send_lat", ("-c", "UC")), ("ib_write_lat", ("-c", "UC")),
                ("ib_send_bw", ("-c", "UD", "-s", 1000)), ("ib_send_lat", ("-c", "UD", "-s", 64))):
            with self.subTest(program=program, arguments=arguments):
                self.measure(program, "-n", 50, *arguments)

    def test_shared_receive_queues(self):
        for program, arguments in (
                ("ib_send_bw", ("-c", "RC", "-q", 4, "-b", "-s", 5000)),
                ("ib_send_lat", ("-c", "RC")), ("ib_send_bw", ("-c", "UC", "-s", 1000)),
                ("ib_send_bw", ("-c", "UD", "-s", 1000))):
            with self.subTest(program=program, arguments=arguments):
                self.measure(program, "-n", 50, "--use-srq", *arguments)

    def test_datagrams(self):
        for arguments in (("-b",), ("-q", 4), ("-e",), ("--odp",), (OLD,)):
            with self.subTest(arguments=arguments):
                self.measure("ib_send_bw", "-n", 50, "-c", "UD", "-s", 1000, *arguments)

    def test_the_traffic_class_is_that_of_the_ip_header(self):
        for kind, transport in itertools.product(self.world.server.gids, ("RC", "UD")):
            with self.subTest(gid=kind, transport=transport):
                both = self.talk("ib_send_bw", "-d", "rxe0", "-F", "-n", 5, "-s", 64, "-c",
                                 transport, "--tclass", 104, "-x",
                                 self.world.server.gids[kind])
                requests = [data for _, data in captures.frames(both.captures[1])
                            if captures.parse(0, data).opcode & 0x1F == SEND_ONLY]
                self.assertGreaterEqual(len(requests), 5, both)
                for data in requests:
                    v6 = data[0] >> 4 == 6
                    first, = struct.unpack_from(">H", data)
                    self.assertEqual(first >> 4 & 0xFF if v6 else data[1], 104)

    def test_multicast(self):
        for kind, gid in self.world.server.gids.items():
            # perftest's own group, ff01::, never leaves its interface, and Linux has no route for
            # groups of IPv6 on lo.
            if kind == "link" or (kind == "v6" and "lo/" in self.world.server.device):
                continue
            # Not ib_send_lat: with one group for both ends each would hear itself.
            with self.subTest(gid=kind):
                self.measure("ib_send_bw", "-n", 50, "-c", "UD", "-s", 64, "-g", "-M",
                             GROUPS[kind], "-x", gid)

    def test_all_combinations(self):
        if not cases.SLOW:
            return
        for program, user, mtu, old, flags in itertools.product(
                BANDWIDTH + LATENCY, self.users, (self.mtus[0], self.mtus[-1]), ([], [OLD]),
                ([], ["-b"], ["-e"], ["-q", 16])):
            if program in LATENCY and ("-b" in flags or "-q" in flags):
                continue
            if "-e" in flags and program not in EVENTS:
                continue
            with self.subTest(program=program, user=user, mtu=mtu, old=old, flags=flags):
                self.measure(program, "-n", 10, "-m", mtu, *old, *flags,
                             runner=self.runner(user, capture=False))


if __name__ == "__main__":
    unittest.main()
