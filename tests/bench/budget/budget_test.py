"""Holds the hot path to its budget: instructions per RDMA WRITE of both ends together, as callgrind
counts them. A count does not depend on how fast or how busy the machine is.

budget.txt has the numbers. After a change that is meant to cost more, or that saves, write the new
ones: tests/bench/budget/budget_test.py PROGRAM --update
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUDGET = pathlib.Path(__file__).with_name("budget.txt")
HEAD = """# Instructions per RDMA WRITE (bytes: instructions), both ends together, MTU 4096, without
# the kernel. A release build with Debian's g++. tests/bench/budget/budget_test.py
"""
COUNTS = {64: 2048, 65536: 256}  # WRITEs by their size
TOLERANCE = 0.05


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(0)


def instructions_per_write(program, size):
    count = COUNTS[size]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
             "--toggle-collect=urxe_measured_writes", program, str(size), str(count)],
            capture_output=True, text=True, timeout=240, check=False)
    if "SKIPPED:" in done.stdout:
        skip(done.stdout.split("SKIPPED:", 1)[1].strip())
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not collected:
        sys.exit(f"{program} failed with status {done.returncode}\n{done.stderr}")
    return int(collected.group(1)) / count


def read_budget():
    lines = [line for line in BUDGET.read_text().splitlines() if not line.startswith("#")]
    return {int(size): int(most) for size, most in (line.split(":") for line in lines)}


def main(program, update):
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    found = {size: instructions_per_write(program, size) for size in COUNTS}
    if update:
        BUDGET.write_text(HEAD + "".join(f"{size}: {value:.0f}\n"
                                         for size, value in found.items()))
        return 0
    good = True
    for size, budget in read_budget().items():
        change = found[size] / budget - 1
        print(f"WRITE of {size} bytes: {found[size]:.0f} instructions, budget {budget}, "
              f"{change:+.1%}")
        if change > TOLERANCE:
            print("  More than the budget allows.")
        if change < -TOLERANCE:
            print("  Better than the budget says: write it down (--update), so that it stays.")
        good = good and abs(change) <= TOLERANCE
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--update" in sys.argv))
