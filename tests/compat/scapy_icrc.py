"""ICRCs of a capture by scapy, an implementation that shares nothing with ours."""

import logging

from tests.compat import captures

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)  # "IPv6 is not supported": we know
try:
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP
except ImportError:  # tools/setup --test installs python3-scapy
    BTH = None

# scapy takes about a millisecond for each.
MOST_PACKETS = 100


def complaints_about(data):
    """A sentence if scapy computes another ICRC for an IPv4 packet; it knows none for IPv6."""
    by_scapy = IP(data)[BTH].compute_icrc(b"")
    if by_scapy != data[-4:]:
        yield f"scapy's ICRC is {by_scapy.hex()}, the packet's {data[-4:].hex()}"


def packets_of(path):
    """(number, bytes) of a capture's RoCEv2 packets over IPv4."""
    return [(number, data) for number, (time, data) in enumerate(captures.frames(path), 1)
            if data and data[0] >> 4 == 4 and captures.parse(time, data) is not None]


def complaints(path):
    """What scapy says of packets that lie evenly over a capture; nothing if there is no scapy."""
    if BTH is None:
        return []
    packets = packets_of(path)
    step = -(-len(packets) // MOST_PACKETS) or 1
    return [f"packet {number}: {complaint}" for number, data in packets[::step]
            for complaint in complaints_about(data)]
