#!/usr/bin/env python3
"""Runs clang-format or shellcheck over the tree.

  external.py clang-format|shellcheck [ROOT]
"""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.tidy.source import all_sources  # noqa: E402

# Another version of clang-format has another taste.
CLANG_FORMAT_VERSION = "version 14."
COMMANDS = {
    "clang-format": ("cpp", ["clang-format", "--dry-run", "-Werror"]),
    "shellcheck": ("shell", ["shellcheck", "--external-sources"]),
}


def reason_to_skip(tool):
    if shutil.which(tool) is None:
        return f"{tool} is missing; tools/setup --test installs it"
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    if tool == "clang-format" and CLANG_FORMAT_VERSION not in version:
        return f"this is not clang-format 14, but {version.strip()}"
    return None


def main():
    tool = sys.argv[1]
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".").resolve()
    reason = reason_to_skip(tool)
    if reason:
        print(f"SKIPPED: {reason}")
        return 0
    kind, command = COMMANDS[tool]
    files = [source.path for source in all_sources(root) if source.kind == kind]
    print(f"{len(files)} files")
    return subprocess.run(command + files, cwd=root, check=False).returncode if files else 0


if __name__ == "__main__":
    sys.exit(main())
