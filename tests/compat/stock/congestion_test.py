"""`urxe run --ecn` under perftest: what is sent can be marked, marks are told of, and who hears of
them sends slower (docs/congestion.md)."""

import re
import unittest

from tests.compat import captures, nodes
from tests.compat.stock import cases

MARKS = "mark dir=rx p=0.2"  # what a switch in congestion would do
CNP = 0x81
ECN, NOT_ECT, ECT_0, CE = 3, 0, 2, 3  # of the IP header's second byte (RFC 3168)
SOONEST_NS = 50_000  # between two notifications of a queue pair
ITERATIONS = 2000


class Congestion(cases.InWorld):
    def write(self, *options):
        """ib_write_bw; Gb/s, and the two ends."""
        port = nodes.free_port()
        command = ["ib_write_bw", "-d", "rxe0", "-F", "-x", str(self.world.server.gids["v4"]), "-p",
                   str(port), "-s", "65536", "-n", str(ITERATIONS), "--report_gbits"]
        both = self.runner(patience=120).both(command, command + [self.world.server.address], port,
                                              options)
        self.assert_both_work(both)
        row = re.search(rf"^ *65536 +{ITERATIONS} +\S+ +(\S+)", both.client.output, re.M)
        self.assertTrue(row, both)
        return float(row[1]), both

    @staticmethod
    def marks(path):
        """The ECN fields of the data packets in a capture."""
        return {header[1] & ECN for _, header in captures.frames(path)
                if captures.parse(0, header).opcode not in (CNP, 0x11)}

    def notifications(self, path):
        return [packet for packet in captures.read(path) if packet.opcode == CNP]

    def test_marks_slow_the_sender_down(self):
        free, both = self.write("--ecn")
        self.assert_captures_are_good(both)
        self.assertEqual(self.marks(both.client.pcap), {ECT_0})
        self.assertEqual(self.notifications(both.client.pcap), [])

        slowed, both = self.write("--ecn", "--fault", MARKS)
        told = self.notifications(both.client.pcap)
        self.assertGreater(len(told), 10, both)
        self.assertTrue(all(packet.icrc_is_right for packet in told))
        sent = self.notifications(both.server.pcap)
        gaps = [later.time - sooner.time for sooner, later in zip(sent, sent[1:])]
        # A packet's time in a capture is that of its sending, a batch later.
        self.assertGreaterEqual(sum(gaps) / len(gaps), 0.9 * SOONEST_NS)
        self.assertLess(slowed, free / 2, both)

    def test_without_it_marks_are_only_counted(self):
        _, both = self.write("--fault", MARKS)
        self.assertIn(MARKS, both.server.output)
        self.assertEqual(self.marks(both.client.pcap), {NOT_ECT})
        self.assertEqual(self.notifications(both.client.pcap), [])


if __name__ == "__main__":
    unittest.main()
