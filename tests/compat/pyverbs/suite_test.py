"""rdma-core's Python tests pass on the emulated device, but for those that librxe or other
vendors' hardware keep from running. The result is a golden file, expected.txt;
URXE_UPDATE_GOLDEN=1 writes it.
"""

import os
import subprocess
import unittest

from tests.compat import nodes, pair
from tests.compat.pyverbs import suite
from tests.compat.stock import cases

RECORD = os.path.join(os.path.dirname(__file__), "record.py")
VERSION = "44."  # of rdma-core: the golden file is about these tests
# That must pass; Linux 6.1's rxe passes 86, or 96 if its interface can be found. Two more pass
# where huge pages are set apart (vm.nr_hugepages).
AT_LEAST = 110


def version():
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "python3-pyverbs"],
                           capture_output=True, text=True, check=False, timeout=30)
    return query.stdout


def run_suite(runner, world, folder):
    script = suite.unpack(folder)
    results = os.path.join(folder, "results")
    finished = runner.alone(
        ["/usr/bin/python3", RECORD, results, str(script), "--dev", "rxe0", "-v"], world.server)
    return finished, suite.read(results)


class Suite(cases.InWorld):
    WORLD = "netns9000"

    def test_results_are_those_of_the_golden_file(self):
        reason = suite.missing()
        if reason is None and not version().startswith(VERSION):
            reason = f"the golden file is about rdma-core {VERSION}x, not {version()}"
        if reason:
            cases.skip(reason)
        runner = self.runner("root", capture=False, patience=500)
        # Tests with two nodes on one device want two addresses.
        nodes.run(*self.world.server.prefix, "ip", "address", "add", "10.83.0.101/24", "dev",
                  "eth0")
        with pair.folder() as folder:
            finished, outcomes = run_suite(runner, self.world, folder)
        table = suite.table(outcomes)
        print(table)
        if os.environ.get("URXE_UPDATE_GOLDEN") == "1":
            suite.EXPECTED.write_text(table, encoding="utf-8")
        expected = suite.parse(suite.EXPECTED.read_text(encoding="utf-8"))
        wrong = suite.differences(expected, suite.parse(table))
        self.assertEqual(wrong, [], finished)
        self.assertNotIn("UNJUSTIFIED", table)
        passed = sum(outcome == "ok" for outcome, _ in outcomes.values())
        self.assertGreaterEqual(passed, AT_LEAST)


if __name__ == "__main__":
    unittest.main()
