"""The verbs as programs meet them through Debian's libibverbs: the programs of this folder pass."""

import sys
import unittest

from tests.compat.stock import cases


class Surface(cases.InWorld):
    WORLD = "netns9000"

    def run_program(self, name, *environment):
        runner = self.runner("root", capture=False, patience=120)
        finished = runner.alone(["env", *environment, sys.executable, "-m",
                                 f"tests.compat.surface.{name}"])
        print(finished.output)
        self.assertEqual(finished.status, 0, finished)
        self.assertIn("\nOK", finished.output)

    def test_events(self):
        self.run_program("events")

    def test_queues(self):
        self.run_program("queues")

    def test_memory(self):
        self.run_program("memory")

    def test_forks(self):
        for asking in ([], ["RDMAV_FORK_SAFE=1"], ["IBV_FORK_SAFE=1"]):
            with self.subTest(asking=asking):
                self.run_program("forks", *asking)


if __name__ == "__main__":
    unittest.main()
