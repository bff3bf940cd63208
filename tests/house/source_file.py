# SPDX-License-Identifier: Apache-2.0
"""The repository as the gates see it: its source files, their text and what they include."""

import dataclasses
import pathlib
import re

FOLDERS = ("include", "src", "tests", "benchmarks", "examples", "cmake", "scripts", ".ci")
NOT_OURS = "benchmarks/traces/"  # kept as it was when the traces were made
CXX_SUFFIXES = (".hpp", ".h", ".cpp", ".cu")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a gate found. A warning is shown and does not fail."""

    path: str
    line: int
    text: str
    warning: bool = False

    def __str__(self):
        return f"{self.path}:{self.line}: {'warning: ' if self.warning else ''}{self.text}"


class SourceFile:
    def __init__(self, root, path):
        self.path = path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.splitlines()

    @property
    def name(self):
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_cxx(self):
        return self.path.endswith(CXX_SUFFIXES)

    @property
    def is_header(self):
        return self.path.endswith((".hpp", ".h"))

    @property
    def is_public(self):
        return self.path.startswith("include/")

    @property
    def is_script(self):
        return self.path.endswith(".py") or self.text.startswith("#!")

    def code(self):
        """The text with comments and literals blanked, so that lines keep their numbers."""
        return NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), self.text)

    def includes(self):
        """(line, quote, name) of each include."""
        return [(self.line_at(found.start(2)), found.group(1), found.group(2))
                for found in INCLUDE.finditer(self.text)]

    def line_at(self, offset):
        return self.text.count("\n", 0, offset) + 1


def read_tree(root):
    """Every source file of the repository, in a fixed order."""
    root = pathlib.Path(root).resolve()
    files = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            known = path.suffix in CXX_SUFFIXES + (".py", ".cmake", ".sh")
            script = path.suffix == "" and folder in ("scripts", ".ci")
            if path.is_file() and (known or script or path.name == "CMakeLists.txt"):
                files.append(SourceFile(root, path))
    return [file for file in files if not file.path.startswith(NOT_OURS)]
