"""What a program does wrong: each mistake has its errno or completion status, and a sentence."""

import unittest

from tests.compat import nodes
from tests.compat.stock import cases


class BadInput(cases.InWorld):
    def test_every_mistake_is_refused_and_explained(self):
        build, _ = nodes.product()
        for user in self.users:
            with self.subTest(user=user):
                finished = self.runner(user).alone([f"{build}/tests/verbs_bad_input"])
                print(finished.output)
                self.assertEqual(finished.status, 0, finished)
                self.assertGreater(finished.output.count("ok  "), 85)


if __name__ == "__main__":
    unittest.main()
