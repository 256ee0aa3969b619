"""Names, comments and words that have no place in the tree."""

import re

from tests.tidy.rule import rule
from tests.tidy.source import CODE

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "CHANGELOG.md", "emulator",
    "verbs", "net", "tests", "tools", "docker", "docs",
}
# In two parts, so that this file does not contain them.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}*~-])/(home|root|work|Users|var/tmp)/\w")
PACKAGE_HOST = re.compile(
    r"\b(?!www\.)[\w-]+\.(debian|ubuntu)\.(org|com)\b|\bpypi\.(org|io)\b|\bnpmjs\.(org|com)\b"
    r"|\b(proxy|sum)\.golang\.org\b|\bpackages\.[\w-]+\.\w+\b|\bartifactory\b", re.IGNORECASE)


@rule("top-level")
def check_top_level(source):
    top = source.path.split("/")[0]
    if top not in TOP_LEVEL and not top.startswith("."):
        yield 1, f"{top} is not one of the fixed top-level entries"


@rule("unfinished")
def check_unfinished(source):
    for number, line in enumerate(source.lines, 1):
        match = UNFINISHED.search(line)
        if match:
            yield number, f"{match.group()}: finish it, or write it into an issue"


@rule("machine-path")
def check_machine_paths(source):
    for number, line in enumerate(source.lines, 1):
        match = MACHINE_PATH.search(line)
        if match:
            yield number, f"{match.group()}… exists on one machine only"


@rule("package-host")
def check_package_hosts(source):
    for number, line in enumerate(source.lines, 1):
        match = PACKAGE_HOST.search(line)
        if match:
            yield number, f"{match.group()}: the machine's own sources say where packages come from"


@rule("file-name", "cpp", "python")
def check_file_name(source):
    name = source.path.rsplit("/", 1)[-1]
    if not re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)?", name):
        yield 1, f"{name} is not in snake_case"


@rule("pragma-once", "cpp")
def check_pragma_once(source):
    if not source.path.endswith(".h"):
        return
    first = next((line for line in source.code_lines if line.strip()), "")
    if first.strip() != "#pragma once":
        yield 1, "a header starts with #pragma once, after its comment"


@rule("getter", "cpp", "python")
def check_getters(source):
    lines = source.code_lines if source.kind == "cpp" else source.lines
    pattern = r"(?<![\w:.>])get_[a-z]\w*\s*\(" if source.kind == "cpp" else r"\bdef (get_\w+)"
    for number, line in enumerate(lines, 1):
        match = re.search(pattern, line)
        if match:
            yield number, f"{match.group()}: name what it returns, without get_"


# What tells a statement in a comment from a sentence.
CPP_IN_COMMENT = re.compile(
    r"\s*//+\s*((return|break|continue|delete|using|goto)\b.*;|.*(=|->|\+\+|--|\w\(.*\)).*;"
    r"|.*\)\s*(const\s*)?\{|[}{]|#\s*(include|define|if|endif).*)\s*$")
PYTHON_IN_COMMENT = re.compile(
    r"\s*#\s*((import|from|return|def|class|print)\b[\s(].*|\w+ = .*|.*\):)$")


@rule("commented-out-code", "cpp", "python")
def check_commented_out_code(source):
    pattern = CPP_IN_COMMENT if source.kind == "cpp" else PYTHON_IN_COMMENT
    for number, line in enumerate(source.lines, 1):
        if pattern.match(line):
            yield number, "code in a comment: the history keeps what was"
        if source.kind == "cpp" and re.match(r"\s*#\s*if\s+0\b", line):
            yield number, "#if 0: the history keeps what was"


@rule("disabled-assertion", *CODE)
def check_disabled_assertions(source):
    for number, line in enumerate(source.lines, 1):
        if re.search(r"-DN" r"DEBUG|define\s+N" r"DEBUG", line):
            yield number, "assertions are on in every build"
