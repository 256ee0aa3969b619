"""10,000 queue pairs, 10,000 completion queues and 100,000 regions in one process, twice."""

import unittest

from tests.compat import nodes
from tests.compat.stock import cases


class Many(cases.InWorld):
    def test_objects_are_made_used_and_gone_and_so_is_what_they_took(self):
        if nodes.SANITIZE:
            cases.skip("a sanitizer keeps the memory that was freed")
        build, _ = nodes.product()
        runner = self.runner(capture=False, patience=240)
        finished = runner.alone([f"{build}/tests/verbs_many"])
        print(finished.output)
        self.assertEqual(finished.status, 0, finished)
        self.assertIn("closed:", finished.output)


if __name__ == "__main__":
    unittest.main()
