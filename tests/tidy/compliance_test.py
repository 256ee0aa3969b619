"""The compliance check notices every way to be out of step."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.tidy import compliance  # noqa: E402

CODE = """// Duplicates are answered (IBTA 9.7.4, C9-105).
int f();  // IBA C10-93.1.1: nothing is sent
const char* id = "C9-999";
"""
TEST = 'TEST_CASE("a duplicate is answered") {}\n'
GOOD = ('| C9-105 | Duplicates. | `emulator/a.h` | `tests/a_test.cc`: "a duplicate is answered" '
        "| done |\n"
        "| C10-93.1.1 | Long datagrams. | `emulator/a.h` | | partly |\n"
        "| o10-37.2.26 | Windows. | | | open |\n"
        "| oA19-28 | Atomic writes. | | | not applicable |\n")


class ComplianceTest(unittest.TestCase):
    def problems(self, document, code=CODE):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {"emulator/a.h": code, "tests/a_test.cc": TEST,
                               "docs/compliance.md": document}.items():
                (root / path).parent.mkdir(exist_ok=True)
                (root / path).write_text(text)
            return "\n".join(compliance.check(root))

    def test_what_is_in_step_passes(self):
        self.assertEqual(self.problems(GOOD), "")

    def test_every_slip_is_noticed(self):
        slips = {
            GOOD.replace("| C10-93.1.1 |", "| C10-94 |"): "cites C10-93.1.1",
            GOOD.replace("`emulator/a.h` |", "|", 1): "C9-105: names no code",
            GOOD.replace("`emulator/a.h`", "`emulator/b.h`", 1): "b.h has no comment that cites",
            GOOD.replace("a_test.cc`", "b_test.cc`"): "tests/b_test.cc does not exist",
            GOOD.replace("is answered", "is dropped"): 'no test "a duplicate is dropped"',
            GOOD.replace(' | `tests/a_test.cc`: "a duplicate is answered"', " |"): "names no test",
            GOOD.replace("| open |", "| soon |"): 'status "soon"',
            GOOD.replace("| partly |", "| open |"): "cites it, but the row says open",
            GOOD + GOOD.splitlines()[0] + "\n": "C9-105 does not belong below oA19-28",
            GOOD.splitlines()[0] + "\n" + GOOD: "C9-105 does not belong below C9-105",
        }
        for document, told in slips.items():
            with self.subTest(told):
                self.assertIn(told, self.problems(document))

    def test_an_id_in_any_comment_needs_a_row(self):
        for comment in ("// IBA C9-1: x", "/* first\n * IBA C9-1 */", "int x;  // and C9-1, too"):
            with self.subTest(comment):
                self.assertIn("cites C9-1,", self.problems(GOOD, CODE + comment + "\n"))

    def test_code_that_cites_no_more_is_noticed(self):
        self.assertIn("no comment that cites", self.problems(GOOD, "int f();  // C10-93.1.1\n"))


if __name__ == "__main__":
    unittest.main()
