# SPDX-License-Identifier: Apache-2.0
"""The gates that look at one file at a time, or at all names at once.

Each takes the files of the repository and returns the problems it found.
"""

import collections
import re

from source_file import Problem

MAX_LINES = 400
WARN_HEADER_LINES = 250
MAX_COLUMNS = 100
MAX_MACROS = 8
MACRO_HOMES = ("include/bursar/core/config.hpp", "include/bursar/core/check.hpp")
LICENSE = "SPDX-License-Identifier: Apache-2.0"

DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
# The start of a declaration with static storage, up to what tells a variable from a function.
STORED = re.compile(r"\b(?:static|inline|extern|constinit)\s+(?!namespace\b|static_assert\b)"
                    r"(?P<type>[^;={}()\[\]]*)(?P<end>[;={(\[])")
TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")


def file_length(files):
    for file in files:
        count = len(file.lines)
        if count > MAX_LINES:
            yield Problem(file.path, count, f"{count} lines, at most {MAX_LINES}: split it by idea")
        elif file.is_header and count > WARN_HEADER_LINES:
            yield Problem(file.path, count, f"{count} lines, aim below {WARN_HEADER_LINES}", True)


def columns(files):
    for file in files:
        for number, line in enumerate(file.lines, 1):
            if len(line) > MAX_COLUMNS:
                yield Problem(file.path, number, f"{len(line)} columns, at most {MAX_COLUMNS}")


def license_line(files):
    """The license first; in C++ then a comment that says why the file exists."""
    for file in files:
        if not (file.is_cxx or file.is_script):
            continue
        at = 1 if file.text.startswith("#!") else 0
        if len(file.lines) <= at or LICENSE not in file.lines[at]:
            yield Problem(file.path, at + 1, f"this line is not the license: {LICENSE}")
        elif file.is_cxx and (len(file.lines) < 2 or not file.lines[1].startswith("// ")):
            yield Problem(file.path, 2, "no comment says why this file exists")


def unique_headers(files):
    """Headers of the library are told apart by name alone."""
    homes = collections.defaultdict(list)
    for file in files:
        if file.is_header and file.path.startswith(("include/", "src/")):
            homes[file.name].append(file.path)
    for name, paths in homes.items():
        for path in paths[1:]:
            yield Problem(path, 1, f"{name} is also {paths[0]}")


def no_fmt(files):
    for file in files:
        if file.is_public:
            lines = [line for line, _, name in file.includes() if name.startswith("fmt/")]
            lines += [file.line_at(found.start()) for found in re.finditer(r"\bfmt::", file.code())]
            for line in lines:
                yield Problem(file.path, line, "fmt in a public header")


def macros(files):
    """Few macros, all in their homes."""
    names = set()
    for file in files:
        if not file.is_public:
            continue
        for found in DEFINE.finditer(file.code()):
            line = file.line_at(found.start(1))
            names.add(found.group(1))
            if not found.group(1).startswith("BURSAR_"):
                yield Problem(file.path, line, f"macro {found.group(1)} is not named BURSAR_*")
            elif file.path not in MACRO_HOMES:
                yield Problem(file.path, line, f"macro outside {' and '.join(MACRO_HOMES)}")
    if len(names) > MAX_MACROS:
        yield Problem(MACRO_HOMES[0], 1, f"{len(names)} macros, at most {MAX_MACROS}")


def is_constant(declared_type):
    """True when the variable itself, not only what it points to, cannot change."""
    if re.search(r"\bconst(expr|eval)\b", declared_type):
        return True
    last_star = max(declared_type.rfind("*"), declared_type.rfind("&"))
    return re.search(r"\bconst\b", declared_type[last_star + 1:]) is not None


def no_mutable_state(files):
    """No variable of static or thread storage in a public header: one copy a shared object."""
    for file in files:
        if not (file.is_header and file.is_public):
            continue
        code = file.code()
        for found in re.finditer(r"\bthread_local\b|\bnamespace\s*\{", code):
            yield Problem(file.path, file.line_at(found.start()),
                          f"{' '.join(found.group().split())} in a public header")
        while TEMPLATE_ARGUMENTS.search(code):  # a function type in them is no function
            code = TEMPLATE_ARGUMENTS.sub(lambda found: " " * len(found.group()), code)
        for found in STORED.finditer(code):
            declared = found.group("type").strip()  # blank: extern "C" {
            is_function = found.group("end") == "(" or "operator" in declared
            if declared and not is_function and not is_constant(declared):
                yield Problem(file.path, file.line_at(found.start()),
                              f"mutable state in a public header: {declared}")


def no_bare_todo(files):
    """What is to be done has an issue, or is done."""
    for file in files:
        for found in re.finditer(r"\b(TODO|FIXME|XXX)\b(?!\(issue-\d+\))", file.text):
            if not file.path.startswith("tests/house/"):
                yield Problem(file.path, file.line_at(found.start()),
                              f"{found.group(1)} without an issue: {found.group(1)}(issue-12)")
