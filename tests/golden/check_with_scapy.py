"""Golden packets against scapy, both ways.

  check_with_scapy.py golden            scapy dissects every golden packet and computes its ICRC
  check_with_scapy.py built DISSECTOR   packets that scapy built, through our parser
"""

import logging
import random
import subprocess
import sys

from tests.golden import golden_files
from tests.golden.golden_files import number

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)  # "IPv6 is not supported": we know
try:
    from scapy.contrib.roce import AETH, BTH, CNPPadding
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.packet import Raw
except ImportError:
    print("SKIPPED: scapy is missing; tools/setup --test installs python3-scapy")
    sys.exit(0)


def dissect_ip(packet):
    udp = packet[UDP]
    fields = {"ip.source": packet.src, "ip.destination": packet.dst}
    if IP in packet:
        fields |= {"ip.traffic_class": number(packet.tos, 2), "ip.hop_limit": number(packet.ttl),
                   "ip.id": number(packet.id, 4),
                   "ip.dont_fragment": number(int(packet.flags.DF))}
    else:
        fields |= {"ip.traffic_class": number(packet.tc, 2), "ip.hop_limit": number(packet.hlim),
                   "ip.flow_label": number(packet.fl, 5)}
    return fields | {"udp.source_port": number(udp.sport)}


def dissect_bth(bth):
    return {"bth.opcode": number(bth.opcode, 2), "bth.solicited": number(bth.solicited),
            "bth.migration": number(bth.migreq), "bth.pad_count": number(bth.padcount),
            "bth.pkey": number(bth.pkey, 4), "bth.fecn": number(bth.fecn),
            "bth.becn": number(bth.becn), "bth.destination": number(bth.dqpn, 6),
            "bth.ack_request": number(bth.ackreq), "bth.psn": number(bth.psn, 6)}


def dissect(data):
    """A golden packet's fields as scapy sees them, and what scapy says beside them."""
    packet = IP(data) if data[0] >> 4 == 4 else IPv6(data)
    bth = packet[BTH]
    extensions, rest = golden_files.take_extensions(bth.opcode, bytes(bth.payload))
    payload = rest[:len(rest) - bth.padcount]
    fields = dissect_ip(packet) | dissect_bth(bth) | extensions
    fields |= {"payload": payload.hex(), "icrc": number(int.from_bytes(
        bth.icrc.to_bytes(4, "big"), "little"), 8)}
    return packet, fields, rest[len(payload):]


def check_scapy_layers(packet, fields):
    """What scapy understands of the extension headers; returns how many it did."""
    if AETH in packet:
        assert number(packet[AETH].syndrome, 2) == fields["aeth.syndrome"]
        assert number(packet[AETH].msn, 6) == fields["aeth.msn"]
        return 1
    if CNPPadding in packet:
        assert packet[CNPPadding].reserved1 == packet[CNPPadding].reserved2 == 0
        return 1
    return 0


def check_lengths_and_checksum(packet, data):
    udp = packet[UDP]
    assert udp.dport == 4791 and udp.chksum == 0
    assert udp.len == len(data) - (20 if IP in packet else 40)
    if IP in packet:
        assert packet.len == len(data) and packet.ihl == 5
        fresh = packet.copy()
        del fresh.chksum
        assert IP(bytes(fresh)).chksum == packet.chksum
    else:
        assert packet.plen == udp.len and packet.nh == 17


def check_golden():
    counts = {"packets": 0, "ICRCs by scapy": 0, "headers by scapy": 0}
    for name, expected, data in golden_files.read_blocks():
        packet, fields, pad = dissect(data)
        assert fields == expected, f"{name}:\n scapy {fields}\n file  {expected}"
        assert pad == bytes(len(pad)), f"{name}: the pad is not zero"
        assert packet[BTH].version == packet[BTH].resv6 == packet[BTH].resv7 == 0, name
        check_lengths_and_checksum(packet, data)
        assert golden_files.icrc(data) == int(fields["icrc"], 0), f"{name}: ICRC"
        if IP in packet:
            by_scapy = packet[BTH].compute_icrc(b"")
            assert by_scapy == data[-4:], f"{name}: scapy's ICRC is {by_scapy.hex()}"
            counts["ICRCs by scapy"] += 1
        counts["headers by scapy"] += check_scapy_layers(packet, fields)
        counts["packets"] += 1
    opcodes = {int(fields["bth.opcode"], 0) for _, fields, _ in golden_files.read_blocks()}
    assert sorted(opcodes) == golden_files.OPCODES
    print(counts)
    assert counts["ICRCs by scapy"] == counts["packets"] / 2


def random_fields(rng, opcode):
    """Values for all that build() puts into a packet."""
    bits = rng.getrandbits
    fields = {
        "bth.opcode": number(opcode, 2), "bth.solicited": number(bits(1)),
        "bth.migration": number(bits(1)), "bth.pkey": number(bits(16), 4),
        "bth.fecn": number(bits(1)), "bth.becn": number(bits(1)),
        "bth.destination": number(bits(24), 6), "bth.ack_request": number(bits(1)),
        "bth.psn": number(bits(24), 6)}
    for header in golden_files.EXTENSIONS.get(opcode, []):
        if header == "aeth":
            fields |= {"aeth.syndrome": number(bits(8), 2), "aeth.msn": number(bits(24), 6)}
        elif header == "feth":
            fields |= {"feth.placement": number(bits(4)), "feth.selectivity": number(bits(2))}
        else:
            for key, digits in golden_files.LAYOUTS[header][1]:
                width = 24 if key == "deth.source" else 4 * digits or 32
                fields[key] = number(bits(width), digits)
    return fields


def payload_size(rng, opcode):
    if opcode in (0x0C, 0x11, 0x12, 0x13, 0x14, 0x1C):
        return 0
    return {0x1D: 8, 0x81: 16}.get(opcode, rng.randrange(0, 70))


def build(rng, opcode, is_v4):
    """A packet made by scapy: its fields and its bytes."""
    fields = random_fields(rng, opcode)
    size = payload_size(rng, opcode)
    payload = bytes(16) if opcode == 0x81 else rng.randbytes(size)
    fields |= {"bth.pad_count": number(-size % 4), "payload": payload.hex()}
    value = {key: int(text, 0) for key, text in fields.items() if key.startswith("bth.")}
    if is_v4:
        ip = IP(src="10.1.2.3", dst="10.4.5.6", id=rng.getrandbits(16), tos=rng.getrandbits(8),
                ttl=rng.getrandbits(8), flags=rng.choice([0, "DF"]))
    else:
        ip = IPv6(src="fd00::1", dst="fd00::2", tc=rng.getrandbits(8), fl=rng.getrandbits(20),
                  hlim=rng.getrandbits(8))
    bth = BTH(opcode=opcode, solicited=value["bth.solicited"], migreq=value["bth.migration"],
              padcount=value["bth.pad_count"], pkey=value["bth.pkey"], fecn=value["bth.fecn"],
              becn=value["bth.becn"], dqpn=value["bth.destination"],
              ackreq=value["bth.ack_request"], psn=value["bth.psn"])
    rest = golden_files.put_extensions(opcode, fields) + payload + bytes(-size % 4)
    packet = ip / UDP(sport=rng.getrandbits(16), dport=4791) / bth / Raw(rest)
    data = bytes(packet)
    if not is_v4:
        data = data[:-4] + golden_files.icrc(data).to_bytes(4, "little")
    fields |= dissect_ip(packet)
    fields["icrc"] = number(int.from_bytes(data[-4:], "little"), 8)
    return fields, data


def parse_output(text):
    return [dict(line.split(": ", 1) if ": " in line else (line.rstrip(": "), "")
                 for line in block.splitlines())
            for block in text.split("\n\n") if block]


def check_built(dissector):
    rng = random.Random(4791)
    built = [build(rng, opcode, is_v4) for opcode in golden_files.OPCODES for _ in range(6)
             for is_v4 in (True, False)]
    spoilt = []
    for _, data in built:
        at = 28 + 8 + 5 if data[0] >> 4 == 4 else 48 + 8 + 5  # within the BTH's last word
        spoilt.append(data[:at - 2] + bytes([data[at - 2] ^ 1]) + data[at - 1:])
    text = "\n".join(data.hex() for data in [data for _, data in built] + spoilt)
    output = parse_output(subprocess.run(
        [dissector], input=text, capture_output=True, text=True, check=True).stdout)
    assert len(output) == 2 * len(built)
    for (fields, data), found in zip(built, output):
        assert found == fields | {"icrc.right": "1"}, f"{data.hex()}\n{found}\n{fields}"
    for found in output[len(built):]:
        assert found["icrc.right"] == "0", found
    print(f"{len(built)} packets, and as many with one bit flipped")


if __name__ == "__main__":
    if sys.argv[1] == "golden":
        check_golden()
    else:
        check_built(sys.argv[2])
