"""Running programs with and without the library.

The environment of the tests (CMakeLists.txt) says what to load:
  URXE_TEST_LIBRARY   liburxe.so
  URXE_TEST_PRELOAD   the value of LD_PRELOAD; with sanitizers their runtime comes first
  URXE_TEST_BUILD     the build's directory
  URXE_TEST_SANITIZE  the sanitizers that the library was built with, if any
"""

import os
import subprocess

LIBRARY = os.environ["URXE_TEST_LIBRARY"]
PRELOAD = os.environ["URXE_TEST_PRELOAD"]
BUILD = os.environ["URXE_TEST_BUILD"]
SANITIZE = os.environ.get("URXE_TEST_SANITIZE", "")
DEVICES = "rxe0=lo/127.0.0.1"


def environment(preload=True, **variables):
    """The environment of a program; URXE_DEVICES and the like may be given as variables."""
    result = {name: value for name, value in os.environ.items() if not name.startswith("URXE_")}
    result.update({"LC_ALL": "C", "URXE_DEVICES": DEVICES})
    result.update({name: value for name, value in variables.items() if value is not None})
    for name, value in variables.items():
        if value is None:
            result.pop(name, None)
    if preload:
        # What leaks in other people's programs is not our affair.
        result.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        result["LD_PRELOAD"] = PRELOAD
    return result


def run(command, preload=True, timeout=50, **variables):
    """Runs a command to its end; returns (exit status, output, errors)."""
    result = subprocess.run(command, env=environment(preload, **variables), capture_output=True,
                            text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    return result.returncode, result.stdout, result.stderr


def output(command, **variables):
    """What a command with the library prints; it must not fail, nor complain."""
    status, text, errors = run(command, **variables)
    if status != 0 or errors:
        raise AssertionError(f"{command}: exit status {status}\n{text}{errors}")
    return text
