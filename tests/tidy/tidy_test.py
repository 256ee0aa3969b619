"""The tidy test finds every planted violation, and nothing in a clean tree."""

import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.tidy import shape, tidy  # noqa: E402
from tests.tidy.rule import RULES  # noqa: E402
from tests.tidy.source import Source  # noqa: E402

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
MARK = re.compile(r"expect(-next)?: ([a-z-]+)")


def function_of(lines):
    return "void f() {\n" + "  f();\n" * (lines - 2) + "}\n"


def python_function_of(lines):
    return "def f():\n" + "    f()\n" * (lines - 1)


# What is too long for a fixture: path, text, and the rules that it breaks with their lines.
LONG = [
    ("emulator/long_function.cc", function_of(71), {("function-length", 1)}),
    ("tools/long_function.py", python_function_of(71), {("function-length", 1)}),
    ("emulator/long_file.cc", "int x;\n" * 801, {("file-length", 801)}),
    ("tests/long_test.cc", "int x;\n" * 1201, {("file-length", 1201)}),
]
JUST_SHORT_ENOUGH = [
    ("emulator/function.cc", function_of(70)),
    ("tools/function.py", python_function_of(70)),
    ("emulator/file.cc", "int x;\n" * 800),
    ("tests/file_test.cc", "int x;\n" * 1200),
    ("tools/wide.sh", "#!/bin/sh\n" + "x" * 100 + "\n"),
]

FUNCTIONS = """
namespace a { namespace {
struct S { int x{1}; std::array<int, 2> y{{1, 2}}; S() : x{2}, y{} {
    x = 1;
  }
  int f() const noexcept { return 1; } };
constexpr auto k = [] {
  if (x) { y; }
  return 1;
}();
constexpr int rows[] = {
  1,
};
class C final : public D {
  explicit C(int a) : a_(a), b_{a} {}
  C& operator=(const C&) = default;
  auto g() -> int {
    for (;;) {
    }
  }
  enum class E : std::uint8_t { a, b };
};
template <typename T>
T h(T x)
  requires std::integral<T>
{
  return x;
}
#define MACRO(x) \\
  if (x) {
TEST_CASE("a { b") {
  struct L { int a; };
  auto q = [&](int x) {
    return '{'; };
}
}}
extern "C" int z(const char* d) {
  return 0;
}
"""


class TidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def expected(self):
        """(path, line, rule) of every mark in the tree."""
        marks = set()
        for path in self.root.rglob("*"):
            if path.is_file():
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    for following, name in MARK.findall(line):
                        marks.add((path.relative_to(self.root).as_posix(),
                                   number + (1 if following else 0), name))
        return marks

    def found(self):
        return {violation[:3] for violation in tidy.check_tree(self.root)}

    def test_every_planted_violation_is_found_and_nothing_else(self):
        shutil.copytree(FIXTURES / "planted", self.root)
        expected = self.expected()
        for path, text, broken in LONG:
            self.write(path, text)
            expected |= {(path, line, name) for name, line in broken}
        self.assertEqual(sorted(self.found()), sorted(expected))

    def test_every_rule_has_a_planted_violation(self):
        shutil.copytree(FIXTURES / "planted", self.root)
        planted = {name for _, _, name in self.expected()}
        planted |= {name for _, _, broken in LONG for name, _ in broken}
        self.assertEqual(planted, set(RULES) | {"exceptions"})

    def test_a_clean_tree_passes(self):
        shutil.copytree(FIXTURES / "clean", self.root)
        for path, text in JUST_SHORT_ENOUGH:
            self.write(path, text)
        self.assertEqual(tidy.check_tree(self.root), [])

    def test_functions_are_found_whatever_stands_around_them(self):
        sizes = list(shape.cpp_function_sizes(Source("x.cc", FUNCTIONS)))
        self.assertEqual(sizes, [(3, 3), (6, 1), (7, 4), (15, 1), (17, 4), (26, 3), (31, 5),
                                 (37, 3)])


if __name__ == "__main__":
    unittest.main()
