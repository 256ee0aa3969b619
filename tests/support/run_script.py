#!/usr/bin/env python3
"""Runs a test that is a script, for ctest: run_script.py COMMAND...

The exit status is the command's, but 77, which ctest takes for a skip, if the command succeeded and
a line of its output starts with "SKIPPED: ". So a test that skips a part and fails in another has
failed. When ctest kills this process for being late, the command goes with it.
"""

import ctypes
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
SKIP_STATUS = 77


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main():
    process = subprocess.Popen(
        sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent)
    skipped = False
    for line in process.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        skipped = skipped or line.startswith(b"SKIPPED: ")
    status = process.wait()
    if status < 0:
        print(f"ended by signal {-status}")
        return 1
    return SKIP_STATUS if status == 0 and skipped else status


if __name__ == "__main__":
    sys.exit(main())
