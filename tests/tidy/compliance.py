#!/usr/bin/env python3
"""Keeps docs/compliance.md and the comments that cite IBTA compliance statements in step.

  compliance.py [ROOT]

Every id that a comment cites has a row; rows are in order and none is twice; a row that is done or
partly done names code that cites the id, one that is neither has no such code, and a row that is
done names a test. Files exist, and so do the test cases whose names stand in quotes.
"""

import pathlib
import re
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.tidy.source import all_sources  # noqa: E402

DOCUMENT = "docs/compliance.md"
STATUSES = ("done", "partly", "open", "not applicable")
ID = re.compile(r"\b[Co]A?\d{1,2}-\d+(?:\.\d+)*\b")


class Row(typing.NamedTuple):
    line: int
    id: str
    code: list  # paths
    tests: list  # (path, name of a test case or "")
    status: str


def cited_ids(root):
    """Id to the paths of the C++ files whose comments cite it."""
    cited = {}
    for source in all_sources(root):
        if source.kind != "cpp" or source.in_folder("tests"):
            continue
        for comment in re.findall(r"//[^\n]*|/\*.*?\*/", source.text, re.DOTALL):
            for name in ID.findall(comment):
                cited.setdefault(name, set()).add(source.path)
    return cited


def read_rows(text):
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or not ID.fullmatch(cells[0]):
            continue
        assert len(cells) == 5, f"{DOCUMENT}:{number}: {len(cells)} cells, not 5"
        tests = re.findall(r'`([^`]+)`(?:: "([^"]+)")?', cells[3])
        rows.append(Row(number, cells[0], re.findall(r"`([^`]+)`", cells[2]), tests, cells[4]))
    return rows


def order(name):
    """C before o, and both before those of the annexes; then by the numbers."""
    letters = re.match(r"[CoA]+", name).group()
    return ["A" in letters, "o" in letters, [int(number) for number in re.findall(r"\d+", name)]]


def check_row(root, row, cited):
    if row.status not in STATUSES:
        yield f'status "{row.status}" is none of {", ".join(STATUSES)}'
    if row.status in ("done", "partly"):
        if not row.code:
            yield "names no code"
        for path in row.code:
            if path not in cited.get(row.id, ()):
                yield f"{path} has no comment that cites it"
    elif row.id in cited:
        yield f"{sorted(cited[row.id])[0]} cites it, but the row says {row.status}"
    if row.status == "done" and not row.tests:
        yield "names no test"
    for path, case in row.tests:
        file = root / path
        if not file.exists():
            yield f"{path} does not exist"
        elif case and f'"{case}"' not in file.read_text():
            yield f'{path} has no test "{case}"'


def check(root):
    """Sentences about what is out of step."""
    document = root / DOCUMENT
    if not document.exists():
        return [f"{DOCUMENT} is missing"]
    cited, rows = cited_ids(root), read_rows(document.read_text())
    problems = [f"{DOCUMENT}:{row.line}: {row.id}: {problem}"
                for row in rows for problem in check_row(root, row, cited)]
    for before, row in zip(rows, rows[1:]):
        if order(before.id) >= order(row.id):
            problems.append(f"{DOCUMENT}:{row.line}: {row.id} does not belong below {before.id}")
    known = {row.id for row in rows}
    for name in sorted(set(cited) - known):
        problems.append(f"{sorted(cited[name])[0]} cites {name}, {DOCUMENT} has no row for it")
    return problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    problems = check(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
