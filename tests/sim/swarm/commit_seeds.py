"""Runs seeds of the swarm that depend on the commit, so that every commit tries others."""

import argparse
import os
import subprocess
import sys

SEEDS_PER_COMMIT = 1 << 24  # no two commits share seeds, mostly


def first_seed():
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode != 0:
        print("not a git tree: the seeds are those of no commit, from 0 on")
        return 0
    return int(head.stdout[:10], 16) * SEEDS_PER_COMMIT


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("simulator", help="path of urxe-sim")
    parser.add_argument("--count", type=int, default=20000)
    arguments = parser.parse_args()
    command = [arguments.simulator, "--from", str(first_seed()), "--count", str(arguments.count),
               "--jobs", str(os.cpu_count() or 1)]
    print(" ".join(command), flush=True)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
