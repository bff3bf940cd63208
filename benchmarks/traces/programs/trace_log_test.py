# SPDX-License-Identifier: Apache-2.0
"""The log of a small memory history, and that `bursar` (the first argument) replays it."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from trace_log import peak_of, trace_lines, write_trace

BURSAR = sys.argv.pop(1)


def event(action, addr, size, stream, time_us):
    return {"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time_us}


HISTORY = [
    event("free_requested", 7, 50, 0, 999_000),
    event("free_completed", 7, 50, 0, 999_500),  # from before the history
    event("segment_alloc", 1024, 2 << 20, 0, 1_000_000),
    event("alloc", 1024, 1000, 0, 1_000_000),
    event("alloc", 4096, 70_000, 94_000_000, 1_001_999),
    event("free_requested", 1024, 1000, 0, 1_002_000),
    event("free_completed", 1024, 1000, 0, 1_003_000),
    event("alloc", 1024, 300, 0, 1_004_100),  # the same address again
    event("free_completed", 4096, 70_000, 94_000_000, 1_005_000),
]
LINES = [
    "0,0,allocate,0,1000,0",
    "0,2,allocate,1,70000,1",
    "0,3,free,0,1000,0",
    "0,4,allocate,2,300,0",
    "0,5,free,1,70000,1",
]


class TraceLog(unittest.TestCase):
    def test_a_history_becomes_a_log(self):
        # Time counts from the first event of any block, here a free 500 us earlier.
        self.assertEqual(list(trace_lines(HISTORY)), LINES)

    def test_the_peak_is_what_was_requested_at_once(self):
        self.assertEqual(peak_of(LINES), 71_000)

    def test_the_same_lines_make_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("a.csv.gz", "b.csv.gz")]
            for path in paths:
                write_trace(LINES, path)
            self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())

    def test_bursar_replays_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path, rows = pathlib.Path(folder, "small.csv.gz"), pathlib.Path(folder, "rows.json")
            write_trace(LINES, path)
            subprocess.run([BURSAR, "replay", "--device", "sim", "--allocator", "segment_cache",
                            "--json", rows, path], check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(json.loads(rows.read_text())[0]["requested_peak_bytes"], 71_000)


if __name__ == "__main__":
    unittest.main()
