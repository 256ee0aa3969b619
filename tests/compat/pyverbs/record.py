"""Runs rdma-core's run_tests.py as it stands, and writes what became of each test into a file.

record.py RESULTS RUN_TESTS ARGUMENTS...: RESULTS gets one line of JSON per test.
"""

import json
import runpy
import sys
import unittest


class Recorder(unittest.TextTestResult):
    """Also writes down outcomes. A test that fails in a subtest has failed."""

    file = None

    def note(self, test, outcome, reason=""):
        # What fails for a whole class or module has no test of its own, but a name.
        line = {"test": test.id(), "outcome": outcome, "reason": reason}
        print(json.dumps(line), file=self.file, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skip", reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error", str(err[1]))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failure", str(err[1]))

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note(test, "ok")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "failure", "unexpected success")


def main():
    results, script = sys.argv[1:3]
    sys.argv = [script] + sys.argv[3:]
    sys.path.insert(0, script.rsplit("/", 1)[0])
    unittest.TextTestRunner.resultclass = Recorder
    # Line buffered and opened once: tests that fork write nothing into it themselves.
    with open(results, "w", encoding="utf-8", buffering=1) as Recorder.file:
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
