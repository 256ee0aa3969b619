"""Reading captures: classic pcap with Ethernet, Linux-cooked or bare IP packets, to RoCEv2 packets.

Nothing here knows the C++ code.
"""

import dataclasses
import shutil
import struct
import subprocess

from tests.golden import golden_files
from tests.golden.check_with_tshark import GUESSES

ROCE_PORT = 4791
MAGIC = {0xA1B2C3D4: 10**3, 0xA1B23C4D: 1}  # nanoseconds of the fraction's unit
BYTES_BEFORE_IP = {1: 14, 101: 0, 113: 16, 276: 20}


@dataclasses.dataclass
class Packet:
    time: int  # nanoseconds
    source: bytes
    destination: bytes
    source_port: int
    opcode: int
    solicited: bool
    pad: int
    pkey: int
    qpn: int  # the destination's
    ack_request: bool
    psn: int
    extensions: bytes  # all behind the BTH, without the ICRC
    icrc_is_right: bool
    checksum_is_right: bool  # of the IPv4 header
    number: int = 0  # in the file, from 1

    @property
    def fields(self):
        """The extension headers' fields."""
        return {key: int(value, 0) for key, value in
                golden_files.take_extensions(self.opcode, self.extensions)[0].items()}

    @property
    def payload(self):
        rest = golden_files.take_extensions(self.opcode, self.extensions)[1]
        return rest[:len(rest) - self.pad]

    def __str__(self):
        return (f"packet {self.number}: opcode {self.opcode:#04x}, QP {self.qpn:#08x}, "
                f"PSN {self.psn:#08x}")


def frames(path):
    """(time in ns, frame from the IP header on) of every packet in a file."""
    with open(path, "rb") as file:
        data = file.read()
    order = "<" if struct.unpack_from("<I", data)[0] in MAGIC else ">"
    magic, _, _, _, _, _, link_type = struct.unpack_from(f"{order}IHHiIII", data)
    skip, unit, at = BYTES_BEFORE_IP[link_type & 0xFFFF], MAGIC[magic], 24
    while at + 16 <= len(data):
        seconds, fraction, length, original = struct.unpack_from(f"{order}IIII", data, at)
        at += 16
        if at + length > len(data):
            return  # the program was killed while it wrote
        if length == original:
            yield seconds * 10**9 + fraction * unit, data[at + skip:at + length]
        at += length


def ip_checksum_is_right(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    return (total & 0xFFFF) + (total >> 16) in (0xFFFF, 0x1FFFE)


def parse(time, data):
    """An IP packet as a Packet; None if it is not RoCEv2."""
    version = data[0] >> 4 if data else 0
    if version == 4 and len(data) >= 28:
        length, = struct.unpack_from(">H", data, 2)
        start, protocol, addresses, size = 20, data[9], data[12:20], 4
    elif version == 6 and len(data) >= 48:
        length = 40 + struct.unpack_from(">H", data, 4)[0]
        start, protocol, addresses, size = 40, data[6], data[8:40], 16
    else:
        return None
    if protocol != 17 or length > len(data):
        return None
    data = data[:length]
    source_port, port = struct.unpack_from(">HH", data, start)
    if port != ROCE_PORT or length < start + 8 + 12 + 4:
        return None
    opcode, flags, pkey, qpn, psn = struct.unpack_from(">BBHII", data, start + 8)
    return Packet(
        time, addresses[:size], addresses[size:], source_port, opcode, bool(flags >> 7),
        flags >> 4 & 3, pkey, qpn & 0xFFFFFF, bool(psn >> 31), psn & 0xFFFFFF,
        data[start + 20:-4],
        golden_files.icrc(data) == int.from_bytes(data[-4:], "little"),
        version == 6 or ip_checksum_is_right(data[:20]))


def read(path):
    """The RoCEv2 packets of a capture."""
    packets = []
    for number, (time, data) in enumerate(frames(path), 1):
        packet = parse(time, data)
        if packet is not None:
            packet.number = number
            packets.append(packet)
    return packets


def check_integrity(packets):
    """Sentences about packets whose ICRC or IPv4 checksum is wrong."""
    for packet in packets:
        if not packet.icrc_is_right:
            yield f"{packet}: the ICRC is wrong"
        if not packet.checksum_is_right:
            yield f"{packet}: the IPv4 header's checksum is wrong"


# tshark takes a payload that begins like an EtherType and two zero bytes for an encapsulated frame.
GUESSED_FRAME = "infiniband:ethertype"


def tshark_complaints(path):
    """What tshark finds malformed in a capture, payloads aside; None if there is no tshark."""
    if shutil.which("tshark") is None:
        return None
    command = ["tshark", "-n", "-r", path, "-Y", "_ws.malformed", "-T", "fields", "-e",
               "frame.number", "-e", "frame.protocols", "-e", "_ws.expert.message"]
    for protocol in GUESSES:
        command += ["--disable-protocol", protocol]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return [f"tshark: frame {line}" for line in result.stdout.splitlines()
            if GUESSED_FRAME not in line]
