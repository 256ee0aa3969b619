"""CM messages that our builder wrote, against tshark's dissector: check_cm_with_tshark.py WRITER"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from tests.golden.check_with_tshark import write_pcap


def read_messages(writer):
    output = subprocess.run([writer], capture_output=True, text=True, check=True, timeout=60).stdout
    for line in output.splitlines():
        pairs = dict(pair.split("=") for pair in line.split())
        data = bytes.fromhex(pairs.pop("hex"))
        yield {name: int(value) for name, value in pairs.items()}, data


def run_tshark(path, columns):
    # The IP header in a REQ's private data looks like the end of SDP's, which nobody uses here.
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|",
               "-E", "occurrence=f", "--disable-protocol", "infiniband_sdp"]
    for column in columns:
        command += ["-e", column]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    return [dict(zip(columns, line.split("|"))) for line in result.stdout.splitlines()]


def main():
    if shutil.which("tshark") is None:
        print("SKIPPED: tshark is missing; tools/setup --run installs it")
        return
    messages = list(read_messages(sys.argv[1]))
    columns = sorted({name for fields, _ in messages for name in fields})
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cm.pcap"
        write_pcap(path, [data for _, data in messages])
        rows = run_tshark(path, columns)
    assert len(rows) == len(messages), f"{len(rows)} rows for {len(messages)} messages"
    compared = 0
    for number, ((fields, _), row) in enumerate(zip(messages, rows)):
        for name, value in fields.items():
            assert row[name], f"message {number}: tshark shows no {name}"
            assert int(row[name], 0) == value, f"message {number}: {name} {row[name]} {value:#x}"
            compared += 1
    assert compared > 400, f"only {compared} fields"
    print(f"{len(messages)} messages, {compared} fields")


if __name__ == "__main__":
    sys.exit(main())
