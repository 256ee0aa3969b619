#!/usr/bin/env python3
"""Tests of the sequences, on captures of Linux's rxe: sequences_test.py"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import explained  # noqa: E402
import roce  # noqa: E402
import sequences  # noqa: E402

CAPTURES = pathlib.Path(__file__).resolve().parents[1] / "golden/captures"
CLIENT = bytes([10, 88, 0, 2])


def of_capture(name, client, server):
    packets = roce.packets((CAPTURES / name).read_bytes())
    return sequences.sequence(packets, client, server, CLIENT)


class SequencesTest(unittest.TestCase):
    def test_retransmissions_are_left_out(self):
        found = of_capture("wire_rnr.pcap", 0x2c, 0x2b)
        self.assertEqual(found["client"], ["+0 SEND_FIRST", "+1 SEND_MIDDLE", "+2 SEND_LAST A",
                                           "+3 SEND_ONLY A"])
        self.assertEqual(found["server"], ["+0 ACK 2c msn 0", "+0 ACK 60 msn 0",
                                           "+2 ACK 1f msn 1", "+3 ACK 1f msn 2"])

    def test_what_follows_a_refused_request_is_left_out(self):
        found = of_capture("wire_oob.pcap", 0x2f, 0x2e)
        self.assertEqual(found, {"client": ["+0 WRITE_FIRST"], "server": ["+0 ACK 62 msn 0"]})

    def test_what_was_written_is_read_again(self):
        cases = {"oob": of_capture("wire_oob.pcap", 0x2f, 0x2e), "uc": {"client": [], "server": []}}
        self.assertEqual(sequences.read(sequences.write(cases)), cases)

    def test_the_output_of_the_client_names_the_queue_pairs(self):
        output = "case rc\n  QP 17 to QP 34\n  ok SEND 1: 0\ncase uc\n  QP 18 to QP 35\n"
        self.assertEqual(sequences.cases_of(output), {"rc": (17, 34), "uc": (18, 35)})

    def test_differences_are_found_line_by_line(self):
        base = {"rc": {"client": ["a", "b", "c"], "server": ["x"]}}
        self.assertEqual(sequences.differences(base, base), [])
        other = {"rc": {"client": ["a", "c", "d"], "server": ["y"]}}
        self.assertEqual(sequences.differences(base, other),
                         [("rc", "client", "b", None), ("rc", "client", None, "d"),
                          ("rc", "server", "x", "y")])

    def test_coalesced_acknowledgements_are_no_difference(self):
        base = {"rc": {"server": ["+2 ACK 1f msn 1", "+3 ACK 1f msn 2"]}}
        other = {"rc": {"server": ["+3 ACK 1f msn 2"]}}
        self.assertEqual(sequences.differences(base, other), [])
        other = {"rc": {"server": ["+3 ACK 1f msn 1"]}}
        self.assertNotEqual(sequences.differences(base, other), [])

    def test_numbers_of_queue_pairs_may_come_again(self):
        packets = roce.packets((CAPTURES / "wire_oob.pcap").read_bytes())
        output = "case oob\n  QP 47 to QP 46\ncase uc\n  QP 1 to QP 2\ncase x\n  QP 47 to QP 46\n"
        found = sequences.sequences(packets, output, CLIENT)
        self.assertEqual(found["oob"]["client"], ["+0 WRITE_FIRST"])
        self.assertEqual(found["x"]["client"], [])

    def test_a_difference_without_a_reason_is_told(self):
        golden = {"rxe-rxe": {"toolong": {"server": ["+0 ACK 63 msn 0", "+1 ACK 1f msn 1"]}},
                  "rxe-urxe": {"toolong": {"server": ["+0 ACK 61 msn 0", "+1 ACK 1f msn 2"]}}}
        text, unexplained = explained.side_by_side(golden)
        self.assertIn("+0 ACK 61 msn 0 [2]", text)
        self.assertEqual(unexplained, ["rxe-urxe, toolong, server: +1 ACK 1f msn 2 instead of "
                                       "+1 ACK 1f msn 1"])


if __name__ == "__main__":
    unittest.main()
