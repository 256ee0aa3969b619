"""The files of a source tree, as the tidy rules see them."""

import functools
import pathlib
import re

SKIPPED_DIRS = {".git", "build", "__pycache__", ".cache"}
FIXTURES = "tests/tidy/fixtures/"
KIND_BY_SUFFIX = {
    ".h": "cpp", ".cc": "cpp", ".c": "cpp", ".py": "python", ".sh": "shell", ".cmake": "cmake",
    ".md": "markdown", ".json": "data", ".yml": "data", ".yaml": "data", ".supp": "data",
}
CODE = ("cpp", "python", "shell", "cmake")

# Comments, string and character literals of C++, in the order in which they must be tried.
LITERALS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL)


def blank(text):
    """Spaces instead of all but the line ends, so that positions stay."""
    return re.sub(r"[^\n]", " ", text)


class Source:
    """One text file. `path` is relative to the root, with slashes."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.splitlines()
        self.kind = self.find_kind()

    def find_kind(self):
        name = self.path.rsplit("/", 1)[-1]
        if name == "CMakeLists.txt":
            return "cmake"
        first = self.lines[0] if self.lines else ""
        if first.startswith("#!"):
            return "python" if "python" in first else "shell"
        return KIND_BY_SUFFIX.get(pathlib.PurePosixPath(name).suffix, "other")

    @functools.cached_property
    def code(self):
        """C++ without comments and without what stands in literals."""
        def hide(match):
            text = match.group(0)
            if text.startswith("/"):
                return blank(text)
            return text[0] + blank(text[1:-1]) + text[-1]
        return LITERALS.sub(hide, self.text)

    @functools.cached_property
    def code_lines(self):
        return self.code.splitlines()

    @functools.cached_property
    def includes(self):
        """(line number, what stands between the quotes or brackets, whether brackets)."""
        found = []
        for number, line in enumerate(self.lines, 1):
            match = re.match(r'\s*#\s*include\s*(<([^>]+)>|"([^"]+)")', line)
            if match:
                found.append((number, match.group(2) or match.group(3), match.group(2) is not None))
        return found

    def in_folder(self, *folders):
        return any(self.path.startswith(folder + "/") for folder in folders)

    def line_of(self, position):
        return self.text.count("\n", 0, position) + 1


def read(root, path):
    """The file as a Source; None if it is not text."""
    data = path.read_bytes()
    if b"\0" in data:
        return None
    try:
        return Source(path.relative_to(root).as_posix(), data.decode())
    except UnicodeDecodeError:
        return None


def all_sources(root):
    """Every text file below `root` but build products and the planted violations."""
    found = []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if not path.is_file() or path.is_symlink() or SKIPPED_DIRS & set(relative.parts):
            continue
        if relative.as_posix().startswith(FIXTURES) or "corpus" in relative.parts:
            continue
        source = read(root, path)
        if source is not None:
            found.append(source)
    return found
