#!/usr/bin/env python3
"""Tests of the judge, on captures of Linux's rxe: judge_test.py"""

import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge  # noqa: E402
import roce  # noqa: E402

CAPTURES = pathlib.Path(__file__).resolve().parents[1] / "golden/captures"
ANY = judge.Expected()


def data_of(name):
    return (CAPTURES / name).read_bytes()


def problems(data, expected=ANY):
    return judge.Judge(roce.packets(data)).problems(expected)


def rebuilt(data, change):
    """A capture whose list of (time, frame) went through `change`."""
    found, _ = roce.frames(data)
    out = data[:roce.PCAP_HEADER]
    for time, frame in change(found):
        seconds, microseconds = divmod(round(time * 1e6), 10**6)
        out += struct.pack("<IIII", seconds, microseconds, len(frame), len(frame)) + frame
    return out


def index_of(data, operation):
    """Which frame is the first with this operation."""
    for index, (time, frame) in enumerate(roce.frames(data)[0]):
        packet = roce.parse(time, frame)
        if packet and packet.operation == operation:
            return index
    raise AssertionError(operation)


class JudgeTest(unittest.TestCase):
    def test_clean_captures_have_no_problems(self):
        for name in ("wire_rc.pcap", "wire_uc.pcap", "wire_ud.pcap", "rc_pingpong_ipv6.pcap",
                     "rping.pcap", "ucmatose.pcap", "cm_reject.pcap"):
            with self.subTest(name):
                self.assertEqual(problems(data_of(name)), [])

    def test_naks_are_problems_unless_expected(self):
        for name, nak in (("wire_badrkey.pcap", "NAK 2"), ("wire_toolong.pcap", "NAK 3"),
                          ("wire_noaccess.pcap", "NAK 1")):
            with self.subTest(name):
                self.assertEqual(problems(data_of(name)), [f"1 times {nak}"])
                allowed = judge.Expected(frozenset([nak]))
                self.assertEqual(problems(data_of(name), allowed), [])

    def test_a_damaged_packet_is_found(self):
        def damage(frames):
            index = index_of(data_of("wire_rc.pcap"), "SEND_ONLY")
            time, frame = frames[index]
            frames[index] = time, frame[:-5] + bytes([frame[-5] ^ 1]) + frame[-4:]
            return frames
        self.assertEqual(problems(rebuilt(data_of("wire_rc.pcap"), damage)), ["1 wrong ICRCs"])

    def test_a_missing_packet_is_found(self):
        data = data_of("wire_rc.pcap")
        for operation, problem in (("SEND_MIDDLE", "1 gaps in the PSNs of requests"),
                                   ("READ_RESPONSE_MIDDLE",
                                    "1 gaps in the PSNs of READ responses")):
            def drop(frames, index=index_of(data, operation)):
                return frames[:index] + frames[index + 1:]
            missing = rebuilt(data, drop)
            self.assertEqual(problems(missing), [problem])
            # Senders that are not judged may leave gaps.
            others = judge.Judge(roce.packets(missing), ["203.0.113.1"])
            self.assertEqual(others.problems(judge.Expected()), [])

    def test_needless_repetitions_are_found(self):
        data = data_of("wire_rc.pcap")
        first, answer = index_of(data, "SEND_ONLY"), index_of(data, "ACK")
        sender = [roce.packets(data)[0].source]
        # Behind which frame, after how many seconds, how often, and how often without need.
        for behind, delay, times, needless in ((first, 0.001, judge.FEW + 1, 0),
                                               (first, 0.001, judge.FEW + 2, judge.FEW + 1),
                                               (answer, 0.0001, judge.FEW + 2, 0),
                                               (answer, 0.2, judge.FEW, 0),
                                               (answer, 0.2, judge.FEW + 1, judge.FEW + 1)):
            def repeat(frames, index=behind, delay=delay, times=times):
                again = [(frames[index][0] + delay, frames[first][1])] * times
                return frames[:index + 1] + again + frames[index + 1:]
            packets = roce.packets(rebuilt(data, repeat))
            found = judge.Judge(packets, sender)
            self.assertEqual(found.retransmissions(), times)
            expected = [f"{needless} requests sent again without need"] if needless else []
            self.assertEqual(found.problems(ANY), expected)
            self.assertEqual(judge.Judge(packets).problems(ANY), [])

    def test_what_follows_a_missing_answer_is_sent_again_with_need(self):
        def packet(time, asks, operation, psn, **more):
            ends = (b"c", b"s") if asks else (b"s", b"c")
            return roce.Packet(time, *ends, 1, "RC", operation, psn, False, False, 256, True,
                               **more)

        def read(time, psn):
            return packet(time, True, "READ_REQUEST", psn, dma_length=512)

        def responses(time, *psns):
            kinds = ("READ_RESPONSE_FIRST", "READ_RESPONSE_LAST")
            return [packet(time, False, kinds[psn % 2], psn, syndrome=0, msn=1) for psn in psns]

        requests = [read(0.001 * i, psn) for i, psn in enumerate((0, 2, 4, 6, 8))]
        again = [read(1 + 0.001 * i, psn) for i, psn in enumerate((2, 4, 6, 8))]
        for psns, needless in (((0, 1, 3, 4, 5, 6, 7, 8, 9), 0),
                               ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 4)):
            with self.subTest(answered=psns):
                found = judge.Judge(requests + responses(0.1, *psns) + again, [b"c"])
                self.assertEqual(sum(flow.hasty for flow in found.requests.values()), needless)

    def test_an_answer_without_a_request_is_found(self):
        data = data_of("wire_rc.pcap")

        def early(frames, index=index_of(data, "ACK")):
            first = index_of(data, "SEND_ONLY")
            return frames[:first] + frames[index:index + 1] + frames[first:]
        self.assertEqual(problems(rebuilt(data, early)), ["1 answers that nobody asked for"])

    def test_an_empty_capture_is_a_problem(self):
        self.assertEqual(problems(data_of("wire_rc.pcap")[:roce.PCAP_HEADER]),
                         ["0 RoCEv2 packets, expected at least 1"])


if __name__ == "__main__":
    unittest.main()
