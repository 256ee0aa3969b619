"""Every planted bug still has its one place in the tree, and says nothing twice."""

import collections
import pathlib
import unittest

from tests.mutation.mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Mutants(unittest.TestCase):

    def test_each_applies_to_the_tree(self):
        for mutant in MUTANTS:
            with self.subTest(mutant.name):
                mutant.fits(ROOT)
                self.assertNotEqual(mutant.old, mutant.new)

    def test_names_differ(self):
        counts = collections.Counter(mutant.name for mutant in MUTANTS)
        self.assertEqual([name for name, count in counts.items() if count > 1], [])

    def test_one_that_does_not_fit_is_refused(self):
        with self.assertRaises(ValueError):
            MUTANTS[0].applied_to("other text")
        with self.assertRaises(ValueError):
            MUTANTS[0].applied_to(MUTANTS[0].old * 2)


if __name__ == "__main__":
    unittest.main()
