"""Signals, handlers, children and threads that meet inside the library (verbs_interrupted)."""

import unittest

from tests.compat import nodes
from tests.compat.stock import cases

EXIT_STATUS = 42
EXITS = 40  # each after another number of signals; in most the library is at work


class Interrupted(cases.InWorld):
    def run_program(self, *arguments):
        build, _ = nodes.product()
        runner = self.runner(capture=False, patience=120)
        return runner.alone([f"{build}/tests/verbs_interrupted", *map(str, arguments)])

    def test_a_handler_may_fork(self):
        finished = self.run_program("fork")
        self.assertEqual(finished.status, 0, finished)

    def test_a_vfork_child_leaves_its_parent_what_is_its_own(self):
        finished = self.run_program("vfork")
        self.assertEqual(finished.status, 0, finished)

    def test_one_thread_reads_sysfs_while_another_makes_channels(self):
        finished = self.run_program("locks")
        self.assertEqual(finished.status, 0, finished)

    def test_a_handler_may_exit(self):
        for signals in range(1, EXITS + 1):
            with self.subTest(signals=signals):
                finished = self.run_program("exit", signals)
                self.assertEqual(finished.status, EXIT_STATUS, finished)


if __name__ == "__main__":
    unittest.main()
