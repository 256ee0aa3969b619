"""Golden packets against tshark's InfiniBand dissector, which knows nearly all headers."""

import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

from tests.golden import golden_files

LINKTYPE_RAW = 101
UNKNOWN_TO_TSHARK = (0x1C, 0x1D, 0x81)  # FLUSH, ATOMIC_WRITE, CNP

# Protocols over RDMA that tshark guesses from the payload, and then finds malformed.
GUESSES = ("rpcordma", "smb_direct", "smc", "nvme-rdma", "lnet", "iser", "infiniband.eoib",
           "infiniband_sdp", "fcoib")

# tshark's field to ours. The payload is left to scapy: tshark hands it to dissectors of its own.
ALWAYS = {
    "udp.srcport": "udp.source_port",
    "infiniband.bth.opcode": "bth.opcode",
    "infiniband.bth.se": "bth.solicited",
    "infiniband.bth.m": "bth.migration",
    "infiniband.bth.padcnt": "bth.pad_count",
    "infiniband.bth.p_key": "bth.pkey",
    "infiniband.bth.destqp": "bth.destination",
    "infiniband.bth.a": "bth.ack_request",
    "infiniband.bth.psn": "bth.psn",
}
BY_HEADER = {
    "deth": {"infiniband.deth.q_key": "deth.qkey", "infiniband.deth.srcqp": "deth.source"},
    "reth": {"infiniband.reth.va": "reth.address", "infiniband.reth.r_key": "reth.rkey",
             "infiniband.reth.dmalen": "reth.length"},
    "atomiceth": {"infiniband.reth.va": "atomiceth.address",
                  "infiniband.reth.r_key": "atomiceth.rkey",
                  "infiniband.atomiceth.swapdt": "atomiceth.swap_or_add",
                  "infiniband.atomiceth.cmpdt": "atomiceth.compare"},
    "aeth": {"infiniband.aeth.syndrome": "aeth.syndrome", "infiniband.aeth.msn": "aeth.msn"},
    "atomicacketh": {"infiniband.atomicacketh.origremdt": "atomicacketh.original"},
    "immdt": {"infiniband.immdt": "immdt.data"},
    "ieth": {"infiniband.ieth": "ieth.rkey"},
}
COLUMNS = list(ALWAYS) + sorted({name for names in BY_HEADER.values() for name in names}) + [
    "infiniband.invariant.crc", "_ws.malformed", "_ws.expert.message"]
HEX_COLUMNS = ("infiniband.immdt", "infiniband.ieth")  # bytes, without 0x


def write_pcap(path, packets):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINKTYPE_RAW))
        for packet in packets:
            file.write(struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)


def run_tshark(path):
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|",
               "-E", "occurrence=f"]
    for protocol in GUESSES:
        command += ["--disable-protocol", protocol]
    for column in COLUMNS:
        command += ["-e", column]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    return [dict(zip(COLUMNS, line.split("|"))) for line in result.stdout.splitlines()]


def value_of(row, column):
    text = row[column]
    assert text, f"tshark shows no {column}"
    return int(text, 16 if column in HEX_COLUMNS else 0)


def check(name, fields, data, row):
    assert not row["_ws.malformed"], f"{name}: malformed, {row['_ws.expert.message']}"
    opcode = int(fields["bth.opcode"], 0)
    columns = dict(ALWAYS)
    for header in golden_files.EXTENSIONS.get(opcode, []):
        columns |= BY_HEADER[header]
    for column, key in columns.items():
        found, expected = value_of(row, column), int(fields[key], 0)
        assert found == expected, f"{name}: {key} is {fields[key]}, tshark says {found:#x}"
    found = value_of(row, "infiniband.invariant.crc")
    assert found == int.from_bytes(data[-4:], "big"), f"{name}: ICRC stands elsewhere"


def main():
    if shutil.which("tshark") is None:
        print("SKIPPED: tshark is missing; tools/setup --run installs it")
        return
    blocks = [block for block in golden_files.read_blocks()
              if int(block[1]["bth.opcode"], 0) not in UNKNOWN_TO_TSHARK]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "golden.pcap"
        write_pcap(path, [data for _, _, data in blocks])
        rows = run_tshark(path)
    assert len(rows) == len(blocks), f"{len(rows)} rows for {len(blocks)} packets"
    for (name, fields, data), row in zip(blocks, rows):
        check(name, fields, data, row)
    print(f"{len(blocks)} packets")


if __name__ == "__main__":
    sys.exit(main())
