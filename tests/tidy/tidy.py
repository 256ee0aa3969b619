#!/usr/bin/env python3
"""Checks the source tree against the project's rules of style.

  tidy.py [ROOT]

One line for every violation; fails if there is any. Exceptions stand in exceptions.txt beside this
file, one a line: path, rule, reason. There may be no more of them than EXCEPTIONS.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.tidy import rooms, shape, words  # noqa: E402  (they register their rules)
from tests.tidy.rule import RULES, Violation, violations_in  # noqa: E402
from tests.tidy.source import all_sources  # noqa: E402

EXCEPTIONS = 0  # may only sink
EXCEPTIONS_FILE = "tests/tidy/exceptions.txt"
MODULES = (rooms, shape, words)


def read_exceptions(root):
    """(path, rule) to the line in the file of exceptions."""
    path = root / EXCEPTIONS_FILE
    exceptions = {}
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if line and not line.startswith("#"):
            words_of_line = line.split(None, 2)
            assert len(words_of_line) == 3, f"{EXCEPTIONS_FILE}:{number}: path, rule, reason"
            exceptions[tuple(words_of_line[:2])] = number
    return exceptions


def check_tree(root):
    """All violations that no exception covers, and exceptions that cover nothing."""
    exceptions = read_exceptions(root)
    found = [violation for source in all_sources(root) for violation in violations_in(source)]
    covered = {(violation.path, violation.rule) for violation in found}
    left = [violation for violation in found
            if (violation.path, violation.rule) not in exceptions]
    left += [Violation(EXCEPTIONS_FILE, line, "exceptions", f"{path} keeps to {name}: delete this")
             for (path, name), line in exceptions.items() if (path, name) not in covered]
    if len(exceptions) != EXCEPTIONS:
        left.append(Violation(EXCEPTIONS_FILE, 1, "exceptions",
                              f"{len(exceptions)} exceptions, tidy.py says {EXCEPTIONS}"))
    return sorted(left)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    violations = check_tree(root)
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations of {len(RULES)} rules")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
