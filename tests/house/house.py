# SPDX-License-Identifier: Apache-2.0
"""Runs gates over the repository: house.py [--root DIR] [GATE...], all of them by default."""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "layering"))

import gates
from layering import layering
from source_file import read_tree

GATES = {gate.__name__: gate for gate in (
    layering, gates.file_length, gates.columns, gates.license_line, gates.unique_headers,
    gates.no_fmt, gates.macros, gates.no_mutable_state, gates.no_bare_todo)}


def find_problems(root, names):
    """What the gates of these names find in the repository at `root`."""
    files = read_tree(root)
    if not files:
        raise FileNotFoundError(f"no source files under {root}")
    return [problem for name in names for problem in GATES[name](files)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("gates", nargs="*", metavar="GATE", help=", ".join(GATES))
    options = parser.parse_args()
    unknown = [name for name in options.gates if name not in GATES]
    if unknown:
        parser.error(f"no gate {', '.join(unknown)}")
    problems = find_problems(options.root, options.gates or GATES)
    for problem in problems:
        print(problem)
    return any(not problem.warning for problem in problems)


if __name__ == "__main__":
    sys.exit(main())
