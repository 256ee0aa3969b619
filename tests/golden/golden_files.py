"""Reads tests/golden/packets (README.md has the format), and lays out headers in Python.

Nothing here knows the C++ code: opcodes, layouts and the ICRC are typed anew.
"""

import pathlib
import struct
import zlib

PACKETS = pathlib.Path(__file__).parent / "packets"

# Extension headers by opcode, in their order on the wire. What is not here has none.
EXTENSIONS = {
    0x03: ["immdt"], 0x05: ["immdt"], 0x06: ["reth"], 0x09: ["immdt"], 0x0A: ["reth"],
    0x0B: ["reth", "immdt"], 0x0C: ["reth"], 0x0D: ["aeth"], 0x0F: ["aeth"], 0x10: ["aeth"],
    0x11: ["aeth"], 0x12: ["aeth", "atomicacketh"], 0x13: ["atomiceth"], 0x14: ["atomiceth"],
    0x16: ["ieth"], 0x17: ["ieth"], 0x1C: ["feth", "reth"], 0x1D: ["reth"],
    0x23: ["immdt"], 0x25: ["immdt"], 0x26: ["reth"], 0x29: ["immdt"], 0x2A: ["reth"],
    0x2B: ["reth", "immdt"], 0x64: ["deth"], 0x65: ["deth", "immdt"],
}
OPCODES = sorted(
    list(range(0x00, 0x15)) + [0x16, 0x17, 0x1C, 0x1D] + list(range(0x20, 0x2C))
    + [0x64, 0x65, 0x81])

# Layout and fields of every extension header: (struct format, [(key, digits)]). A key of None is
# reserved. 24-bit fields share a word with what stands before them.
LAYOUTS = {
    "immdt": (">I", [("immdt.data", 8)]),
    "ieth": (">I", [("ieth.rkey", 8)]),
    "reth": (">QII", [("reth.address", 16), ("reth.rkey", 8), ("reth.length", 0)]),
    "atomiceth": (">QIQQ", [("atomiceth.address", 16), ("atomiceth.rkey", 8),
                            ("atomiceth.swap_or_add", 16), ("atomiceth.compare", 16)]),
    "atomicacketh": (">Q", [("atomicacketh.original", 16)]),
    "deth": (">II", [("deth.qkey", 8), ("deth.source", 6)]),
}


def number(value, digits=0):
    return f"0x{value:0{digits}x}" if digits else str(value)


def read_blocks():
    """All packets of all files: a list of (name, fields, bytes)."""
    blocks = []
    for path in sorted(PACKETS.glob("*.txt")):
        for text in path.read_text().split("\n\n"):
            lines = [line for line in text.splitlines() if line and not line.startswith("#")]
            if not lines:
                continue
            at = lines.index("hex:")
            fields = dict(line.split(": ", 1) if ": " in line else (line.rstrip(": "), "")
                          for line in lines[:at])
            name = fields.pop("packet")
            blocks.append((name, fields, bytes.fromhex("".join(lines[at + 1:]))))
    return blocks


def take_extensions(opcode, data):
    """The fields of an opcode's extension headers, and the bytes behind them."""
    fields = {}
    for header in EXTENSIONS.get(opcode, []):
        if header == "aeth":
            word, = struct.unpack_from(">I", data)
            fields["aeth.syndrome"] = number(word >> 24, 2)
            fields["aeth.msn"] = number(word & 0xFFFFFF, 6)
            data = data[4:]
        elif header == "feth":
            word, = struct.unpack_from(">I", data)
            fields["feth.placement"] = number(word & 0xF)
            fields["feth.selectivity"] = number(word >> 4 & 3)
            data = data[4:]
        else:
            layout, keys = LAYOUTS[header]
            for (key, digits), value in zip(keys, struct.unpack_from(layout, data)):
                fields[key] = number(value, digits)
            data = data[struct.calcsize(layout):]
    return fields, data


def put_extensions(opcode, fields):
    """The bytes of an opcode's extension headers."""
    data = b""
    value = {key: int(text, 0) for key, text in fields.items() if key.split(".")[0] in
             ("immdt", "ieth", "reth", "atomiceth", "atomicacketh", "deth", "aeth", "feth")}
    for header in EXTENSIONS.get(opcode, []):
        if header == "aeth":
            data += struct.pack(">I", value["aeth.syndrome"] << 24 | value["aeth.msn"])
        elif header == "feth":
            data += struct.pack(">I", value["feth.selectivity"] << 4 | value["feth.placement"])
        else:
            layout, keys = LAYOUTS[header]
            data += struct.pack(layout, *(value[key] for key, _ in keys))
    return data


def icrc(packet):
    """The ICRC of an IP packet that ends with one."""
    masked = bytearray(packet[:-4])
    is_v4 = masked[0] >> 4 == 4
    if is_v4:
        for at in (1, 8, 10, 11):
            masked[at] = 0xFF
    else:
        masked[0] |= 0x0F
        for at in (1, 2, 3, 7):
            masked[at] = 0xFF
    udp = 20 if is_v4 else 40
    for at in (udp + 6, udp + 7, udp + 8 + 4):
        masked[at] = 0xFF
    return zlib.crc32(b"\xff" * 8 + bytes(masked))
