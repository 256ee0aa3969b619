"""Sizes of lines, functions and files."""

import ast
import re

from tests.tidy.rule import rule
from tests.tidy.source import CODE, blank

MAX_LINE = 100
MAX_FUNCTION = 70
MAX_FILE = 800
MAX_TEST_FILE = 1200

NAMESPACE = re.compile(r"\b(namespace|extern)\b")
TYPE = re.compile(r"\b(class|struct|union|enum)\b")
# The end of the text before a function's body: parameters or captures, and what may follow them.
BODY = re.compile(
    r"[)\]]\s*((const|noexcept|override|final|mutable|constexpr|try|&&?"
    r"|->[^;{}()]*|requires\b[^;{}]*)\s*)*$")
# Inside a constructor's initialiser list: before a member's braces, and behind them.
MEMBER = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:).*[\w>]\s*$", re.DOTALL)
MEMBERS_DONE = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:).*\}\s*$", re.DOTALL)


@rule("line-length", *CODE)
def check_line_length(source):
    for number, line in enumerate(source.lines, 1):
        if len(line) > MAX_LINE:
            yield number, f"{len(line)} columns, {MAX_LINE} are allowed"


@rule("file-length", *CODE)
def check_file_length(source):
    limit = MAX_TEST_FILE if source.in_folder("tests") else MAX_FILE
    if len(source.lines) > limit:
        yield limit + 1, f"{len(source.lines)} lines, {limit} are allowed"


def scope_of(head):
    """What a brace at file, namespace or class level opens, by the text before it."""
    if NAMESPACE.search(head) and "(" not in head:
        return "namespace"
    if MEMBER.search(head):
        return "initialiser"
    if BODY.search(head) or MEMBERS_DONE.search(head):
        return "function"
    return "type" if TYPE.search(head) else "initialiser"


def functions(code):
    """(first position, last position) of the functions' bodies in C++ code without literals."""
    stack = []  # (scope, position)
    head = 0  # where the text of the present declaration starts
    for match in re.finditer(r"[{};]", code):
        inside = any(scope == "function" for scope, _ in stack)
        if match.group() == "{":
            scope = "block" if inside else scope_of(code[head:match.start()])
            stack.append((scope, match.start()))
            if scope in ("namespace", "type"):
                head = match.end()
        elif match.group() == "}" and stack:
            scope, start = stack.pop()
            if scope == "function":
                yield start, match.start()
            if scope != "initialiser" and not inside or scope == "function":
                head = match.end()
        elif not inside:
            head = match.end()


def cpp_function_sizes(source):
    directives = r"(?m)^[ \t]*#(?:\\\n|.)*"  # with the lines that a backslash continues
    code = re.sub(directives, lambda match: blank(match.group()), source.code)
    for start, end in functions(code):
        yield source.line_of(start), code.count("\n", start, end) + 1


def python_function_sizes(source):
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


@rule("function-length", "cpp", "python")
def check_function_length(source):
    find = cpp_function_sizes if source.kind == "cpp" else python_function_sizes
    for line, size in find(source):
        if size > MAX_FUNCTION:
            yield line, f"a function of {size} lines, {MAX_FUNCTION} are allowed"


@rule("whitespace", *CODE)
def check_whitespace(source):
    for number, line in enumerate(source.lines, 1):
        if line != line.rstrip() or "\t" in line:
            yield number, "a tab, or space at the end of the line"
    if source.text and not source.text.endswith("\n"):
        yield len(source.lines), "no line end at the end of the file"
