"""run_script.py tells ctest the truth."""

import pathlib
import signal
import subprocess
import sys
import time
import unittest

RUN = [sys.executable, str(pathlib.Path(__file__).parent / "run_script.py")]


def run(script):
    return subprocess.run(RUN + ["sh", "-c", script], capture_output=True, text=True, check=False)


def is_alive(pid):
    """Whether a process exists and is no zombie."""
    status = pathlib.Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


class RunScriptTest(unittest.TestCase):
    def test_the_status_is_that_of_the_command(self):
        self.assertEqual(run("exit 0").returncode, 0)
        self.assertEqual(run("exit 3").returncode, 3)

    def test_output_and_errors_are_passed_on(self):
        self.assertEqual(run("echo out; echo error >&2").stdout, "out\nerror\n")

    def test_a_skip_has_a_status_of_its_own(self):
        self.assertEqual(run("echo 'SKIPPED: no reason'").returncode, 77)
        self.assertEqual(run("echo 'nothing was SKIPPED: really'").returncode, 0)

    def test_a_failure_after_a_skip_is_a_failure(self):
        self.assertEqual(run("echo 'SKIPPED: a part'; exit 1").returncode, 1)

    def test_a_crash_is_a_failure_even_after_a_skip(self):
        self.assertEqual(run("echo 'SKIPPED: a part'; kill -SEGV $$").returncode, 1)

    def test_the_command_dies_with_its_runner(self):
        process = subprocess.Popen(RUN + ["sh", "-c", "echo $$; exec sleep 60"],
                                   stdout=subprocess.PIPE, text=True)
        child = int(process.stdout.readline())
        self.assertTrue(is_alive(child))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        deadline = time.monotonic() + 10
        while is_alive(child) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(is_alive(child))


if __name__ == "__main__":
    unittest.main()
