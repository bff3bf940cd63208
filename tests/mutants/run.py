#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the library on purpose, one patch at a time, and shows that it is noticed.

Each NN-name.patch beside this file is a mutant: a small diff against include/ or src/ whose first
line says what is broken. The library is built without its own checks, with the killer (killer.cpp
and the engine of tests/fuzz); each mutant must be objected to, and the library itself must not.
Only the files that a patch reaches are compiled again. Exits with 1 when a mutant survives, a patch
does not apply or compile, or the library itself is objected to.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARY = ("src/core", "src/driver/sim", "src/physical", "src/address", "src/block",
           "src/allocator")
ENGINE = ("tests/fuzz/operation.cpp", "tests/fuzz/world.cpp", "tests/fuzz/world_checks.cpp",
          "tests/fuzz/world_steps.cpp", "tests/mutants/cache_scenarios.cpp",
          "tests/mutants/killer.cpp")
FLAGS = ("-std=c++20", "-O1", "-w", "-DBURSAR_CHECK_LEVEL=0", "-pthread")
BY_ORACLE = ("detector", "validate", "harness")
TIME_LIMIT = 40

Verdict = collections.namedtuple("Verdict", "by text")


class Broken(Exception):
    """The mutant cannot be judged: its patch does not apply, or does not compile."""


class Workshop:
    """The unbroken library and killer, built once; mutants reuse what they do not change."""

    def __init__(self, folder, options):
        self.folder = folder
        self.options = options
        self.base = folder / "base"
        for part in ("include", "src", "tests/fuzz"):
            shutil.copytree(ROOT / part, self.base / part)
        (self.base / "tests/mutants").mkdir()
        for own in [*HERE.glob("*.cpp"), *HERE.glob("*.hpp")]:
            shutil.copy(own, self.base / "tests/mutants")
        self.sources = [path.relative_to(self.base).as_posix() for part in LIBRARY
                        for path in sorted((self.base / part).glob("*.cpp"))]
        self.sources += ENGINE
        self.objects = {}
        self.needs = {}  # by source: the files it includes

    def compile(self, source, out, overlay=None):
        """Compiles `source`, looking for it and for headers in `overlay` first."""
        include = ["-Iinclude", "-Itests"]
        path = source
        if overlay is not None:
            include.insert(0, f"-I{os.path.relpath(overlay / 'include', self.base)}")
            if (overlay / source).exists():
                path = os.path.relpath(overlay / source, self.base)
        out.parent.mkdir(parents=True, exist_ok=True)
        self.call([*self.options.launcher, self.options.cxx, *FLAGS, *include, "-MMD", "-MF",
                   str(out) + ".d", "-c", path, "-o", str(out)], f"{source} does not compile")

    def call(self, command, complaint):
        done = subprocess.run(command, cwd=self.base, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Broken(f"{complaint}:\n{done.stdout}{done.stderr}")

    def link(self, objects, out):
        self.call([self.options.cxx, *objects, "-o", str(out), "-pthread", self.options.fmt],
                  "does not link")

    def build(self, pool):
        outs = {source: self.folder / "objects" / (source + ".o") for source in self.sources}
        jobs = [pool.submit(self.compile, source, out) for source, out in outs.items()]
        for job in jobs:
            job.result()
        for source, out in outs.items():
            self.objects[source] = str(out)
            self.needs[source] = set(pathlib.Path(f"{out}.d").read_text().split())
        self.link(self.objects.values(), self.folder / "killer")

    def judge(self, killer):
        try:
            done = subprocess.run([str(killer), str(ROOT / "tests/fuzz/corpus")],
                                  capture_output=True, text=True, errors="replace", check=False,
                                  timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return Verdict("hang", f"no end within {TIME_LIMIT} s")
        if done.returncode == 0:
            return None
        by, _, text = done.stdout.strip().partition(": ")
        if done.returncode == 1 and by in BY_ORACLE:
            return Verdict(by, text)
        return Verdict("crash", f"exit code {done.returncode}")

    def judge_mutant(self, patch):
        overlay = self.folder / patch.stem
        changed = re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)
        if not changed:
            raise Broken("changes nothing")
        for name in changed:
            (overlay / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.base / name, overlay / name)
        self.call(["patch", "-p1", "--no-backup-if-mismatch", "-d", str(overlay), "-i",
                   str(patch)], "does not apply")
        objects = dict(self.objects)
        for source in self.sources:
            if self.needs[source].isdisjoint(changed):
                continue
            objects[source] = str(overlay / "objects" / (source + ".o"))
            self.compile(source, pathlib.Path(objects[source]), overlay)
        self.link(objects.values(), overlay / "killer")
        verdict = self.judge(overlay / "killer")
        shutil.rmtree(overlay)
        return verdict


def describe(patch):
    return patch.read_text().splitlines()[0].lstrip("# ")


def examine(workshop, patches, pool):
    """Prints a line for each mutant; returns how many were noticed by whom."""
    jobs = [(patch, pool.submit(workshop.judge_mutant, patch)) for patch in patches]
    counts = collections.Counter()
    for patch, job in jobs:
        try:
            verdict = job.result() or Verdict("SURVIVES", describe(patch))
        except Broken as broken:
            verdict = Verdict("BROKEN", str(broken))
        counts[verdict.by] += 1
        print(f"{patch.stem:44} {verdict.by:9} {verdict.text}", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cxx", default="c++", help="the compiler")
    parser.add_argument("--fmt", default="-lfmt", help="how to link fmt")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("mutants", nargs="*", help="names or numbers; all when none is given")
    options = parser.parse_args()
    ccache = shutil.which("ccache")
    options.launcher = [ccache] if ccache else []
    patches = [patch for patch in sorted(HERE.glob("*.patch"))
               if not options.mutants or any(patch.name.startswith(m) for m in options.mutants)]
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        workshop = Workshop(pathlib.Path(folder), options)
        workshop.build(pool)
        verdict = workshop.judge(pathlib.Path(folder) / "killer")
        print(f"{'(the library itself)':44} {verdict.by if verdict else 'clean':9} "
              f"{verdict.text if verdict else ''}", flush=True)
        counts = examine(workshop, patches, pool)
    failed = counts["SURVIVES"] + counts["BROKEN"]
    print(f"{len(patches)} mutants, {len(patches) - failed} noticed:",
          ", ".join(f"{count} by {who}" for who, count in sorted(counts.items())))
    return 1 if failed or verdict or not patches else 0


if __name__ == "__main__":
    sys.exit(main())
