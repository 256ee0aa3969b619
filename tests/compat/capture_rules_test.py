"""The rules for captures: Linux's rxe keeps them, and every planted slip is found."""

import dataclasses
import pathlib
import unittest

from tests.compat import capture_rules, captures, scapy_icrc

CAPTURES = pathlib.Path(__file__).resolve().parents[1] / "golden" / "captures"


def wire_rc():
    return captures.read(CAPTURES / "wire_rc.pcap")


def with_extension(packet, offset, value):
    """The packet with other bytes in its extension headers."""
    data = packet.extensions
    return dataclasses.replace(
        packet, extensions=data[:offset] + value + data[offset + len(value):])


class Rules(unittest.TestCase):
    def test_the_packets_of_linux_keep_the_rules(self):
        for path in sorted(CAPTURES.glob("*.pcap")):
            with self.subTest(path.name):
                packets = captures.read(path)
                self.assertTrue(packets)
                self.assertEqual(list(captures.check_integrity(packets)), [])
                self.assertEqual(capture_rules.check(packets), [])

    def test_scapy_finds_every_icrc_right_and_a_changed_one_wrong(self):
        if scapy_icrc.BTH is None:
            print("SKIPPED: scapy is missing; tools/setup --test installs python3-scapy")
            return
        for path in sorted(CAPTURES.glob("*.pcap")):
            self.assertEqual(scapy_icrc.complaints(path), [], path.name)
        _, packet = scapy_icrc.packets_of(CAPTURES / "wire_rc.pcap")[0]
        changed = packet[:-1] + bytes([packet[-1] ^ 1])
        self.assertEqual(len(list(scapy_icrc.complaints_about(changed))), 1)

    def assert_found(self, sentence, change, *opcodes):
        """Changing the second packet with one of the opcodes breaks a rule."""
        packets = wire_rc()
        at = [i for i, packet in enumerate(packets) if packet.opcode in opcodes][1]
        changed = change(packets[at])
        packets[at:at + 1] = changed if isinstance(changed, list) else [changed]
        violations = capture_rules.check(packets)
        self.assertTrue(any(sentence in violation for violation in violations),
                        f"{sentence!r} is not in {violations[:5]}")

    def test_a_missing_packet_is_found(self):
        for opcode in (0x00, 0x01, 0x07, 0x0A, 0x0C, 0x14):
            with self.subTest(opcode=opcode):
                self.assert_found("the next PSN is", lambda _: [], opcode)

    def test_another_opcode_in_a_message_is_found(self):
        for opcode, other in ((0x01, 0x07), (0x02, 0x04), (0x08, 0x0A), (0x07, 0x0C)):
            with self.subTest(opcode=opcode):
                self.assert_found("", lambda packet, other=other: dataclasses.replace(
                    packet, opcode=other, extensions=bytes(16) + packet.extensions), opcode)

    def test_a_wrong_acknowledgement_is_found(self):
        def later(packet):
            return dataclasses.replace(packet, psn=capture_rules.after(packet.psn, 500))
        self.assert_found("answers nothing", later, 0x11)
        self.assert_found("answers nothing", later, 0x0D)
        self.assert_found("answers no atomic", lambda packet: dataclasses.replace(
            packet, psn=capture_rules.after(packet.psn, -8)), 0x12)

    def test_an_acknowledgement_of_less_is_found(self):
        self.assert_found("acknowledges less", lambda packet: [packet, dataclasses.replace(
            packet, psn=capture_rules.after(packet.psn, -1))], 0x11)

    def test_a_wrong_msn_is_found(self):
        self.assert_found("messages were sent", lambda packet: with_extension(
            packet, 1, (9999).to_bytes(3, "big")), 0x11)

    def test_a_wrong_read_response_is_found(self):
        self.assert_found("a last at", lambda packet: dataclasses.replace(packet, opcode=0x0F),
                          0x0D)
        self.assert_found("bytes instead of", lambda packet: dataclasses.replace(
            packet, extensions=packet.extensions[:-4]), 0x0D)

    def test_wrong_lengths_are_found(self):
        self.assert_found("at an MTU of", lambda packet: dataclasses.replace(
            packet, extensions=packet.extensions[:-4]), 0x01)
        self.assert_found("do not add up", lambda packet: with_extension(
            packet, 12, (7).to_bytes(4, "big")), 0x06)

    def test_wrong_headers_are_found(self):
        self.assert_found("P_Key", lambda packet: dataclasses.replace(packet, pkey=1), 0x00)
        self.assert_found("solicited event", lambda packet: dataclasses.replace(
            packet, solicited=True), 0x00)
        self.assert_found("pad bytes", lambda packet: dataclasses.replace(packet, pad=1), 0x00)

    def test_a_damaged_packet_is_found(self):
        path = CAPTURES / "wire_rc.pcap"
        for time, frame in captures.frames(path):
            packet = captures.parse(time, frame)
            if packet is not None and packet.payload:
                break
        damaged = captures.parse(0, frame[:-8] + bytes([frame[-8] ^ 1]) + frame[-7:])
        self.assertEqual(len(list(captures.check_integrity([packet]))), 0)
        self.assertEqual(len(list(captures.check_integrity([damaged]))), 1)


if __name__ == "__main__":
    unittest.main()
