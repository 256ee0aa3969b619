"""RoCEv2 packets of capture files."""

import dataclasses
import struct
import zlib

TRANSPORTS = ("RC", "UC", "RD", "UD", "CNP", "XRC", "6", "7")
OPERATIONS = """
    SEND_FIRST SEND_MIDDLE SEND_LAST SEND_LAST_IMM SEND_ONLY SEND_ONLY_IMM WRITE_FIRST WRITE_MIDDLE
    WRITE_LAST WRITE_LAST_IMM WRITE_ONLY WRITE_ONLY_IMM READ_REQUEST READ_RESPONSE_FIRST
    READ_RESPONSE_MIDDLE READ_RESPONSE_LAST READ_RESPONSE_ONLY ACK ATOMIC_ACK CMP_SWAP FETCH_ADD 21
    SEND_LAST_INV SEND_ONLY_INV 24 25 26 27 FLUSH ATOMIC_WRITE 30 31""".split()
WITH_AETH = {"READ_RESPONSE_FIRST", "READ_RESPONSE_LAST", "READ_RESPONSE_ONLY", "ACK",
             "ATOMIC_ACK"}
WITH_RETH = {"WRITE_FIRST", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST"}
EXTRA_HEADERS = {"READ_REQUEST": 16, "WRITE_FIRST": 16, "WRITE_ONLY": 16, "WRITE_ONLY_IMM": 20,
                 "ACK": 4, "ATOMIC_ACK": 12, "CMP_SWAP": 28, "FETCH_ADD": 28,
                 "READ_RESPONSE_FIRST": 4, "READ_RESPONSE_LAST": 4, "READ_RESPONSE_ONLY": 4,
                 "SEND_LAST_IMM": 4, "SEND_ONLY_IMM": 4, "WRITE_LAST_IMM": 4, "SEND_LAST_INV": 4,
                 "SEND_ONLY_INV": 4}
PCAP_HEADER = 24
ROCE_PORT = b"\x12\xb7"


@dataclasses.dataclass
class Packet:
    """One packet. `syndrome` and `msn` are None without AETH, `dma_length` without RETH."""
    time: float
    source: bytes
    destination: bytes
    qpn: int
    transport: str
    operation: str
    psn: int
    ack_request: bool
    solicited: bool
    payload: int
    icrc_is_right: bool
    syndrome: int | None = None
    msn: int | None = None
    dma_length: int | None = None

    @property
    def is_answer(self):
        return "RESPONSE" in self.operation or self.operation in ("ACK", "ATOMIC_ACK")

    @property
    def has_exact_mtu(self):
        return self.operation.endswith(("_FIRST", "_MIDDLE"))

    def nak(self):
        """Which NAK this is: "NAK 0" to "NAK 4", "RNR NAK"; None if it is none."""
        if self.syndrome is None or self.syndrome >> 5 == 0:
            return None
        return "RNR NAK" if self.syndrome >> 5 == 1 else f"NAK {self.syndrome & 31}"


def frames(data):
    """(seconds, captured bytes) of the frames in a classic pcap file, and where they end."""
    order, nanoseconds = {
        "d4c3b2a1": ("<", False), "4d3cb2a1": ("<", True), "a1b2c3d4": (">", False),
        "a1b23c4d": (">", True)}[data[:4].hex()]
    found, offset = [], PCAP_HEADER
    while offset + 16 <= len(data):
        seconds, fraction, captured, _ = struct.unpack_from(order + "IIII", data, offset)
        if offset + 16 + captured > len(data):
            break
        frame = data[offset + 16:offset + 16 + captured]
        found.append((seconds + fraction / (1e9 if nanoseconds else 1e6), frame))
        offset += 16 + captured
    return found, offset


def ip_packet(frame):
    """The IP packet without padding and the length of its header; None if it is not UDP."""
    ethertype = int.from_bytes(frame[12:14], "big")
    if len(frame) < 42:
        return None
    if ethertype == 0x0800:
        header, protocol = (frame[14] & 15) * 4, frame[23]
        length = int.from_bytes(frame[16:18], "big")
    elif ethertype == 0x86dd:
        header, protocol = 40, frame[20]
        length = 40 + int.from_bytes(frame[18:20], "big")
    else:
        return None
    return (frame[14:14 + length], header) if protocol == 17 else None


def icrc(packet, header):
    """The CRC32 over 8 bytes of ones and the packet, what routers may change set to ones."""
    masked = bytearray(packet[:-4])
    if packet[0] >> 4 == 6:
        masked[0] |= 0x0f
        changing = (1, 2, 3, 7)  # traffic class, flow label, hop limit
    else:
        changing = (1, 8, 10, 11)  # TOS, TTL, header checksum
    for index in (*changing, header + 6, header + 7, header + 12):  # UDP checksum, FECN and BECN
        masked[index] = 0xff
    return zlib.crc32(masked, zlib.crc32(b"\xff" * 8))


def parse(time, frame):
    """The RoCEv2 packet in a frame; None if there is none."""
    found = ip_packet(frame)
    if not found:
        return None
    ip, header = found
    bth = ip[header + 8:]
    if len(bth) < 16 or ip[header + 2:header + 4] != ROCE_PORT:
        return None
    operation = OPERATIONS[bth[0] & 31]
    transport = TRANSPORTS[bth[0] >> 5]
    source, destination = (ip[12:16], ip[16:20]) if header < 40 else (ip[8:24], ip[24:40])
    extra = EXTRA_HEADERS.get(operation, 0) + (8 if transport == "UD" else 0)
    packet = Packet(
        time, source, destination, int.from_bytes(bth[5:8], "big"), transport, operation,
        int.from_bytes(bth[9:12], "big"), bool(bth[8] & 0x80), bool(bth[1] & 0x80),
        len(bth) - 16 - extra - (bth[1] >> 4 & 3),
        icrc(ip, header) == int.from_bytes(ip[-4:], "little"))
    if transport == "RC" and operation in WITH_AETH:
        packet.syndrome, packet.msn = bth[12], int.from_bytes(bth[13:16], "big")
    if operation in WITH_RETH:
        packet.dma_length = int.from_bytes(bth[24:28], "big")
    return packet


def packets(data):
    """All RoCEv2 packets in a pcap file's bytes."""
    parsed = (parse(time, frame) for time, frame in frames(data)[0])
    return [packet for packet in parsed if packet]
