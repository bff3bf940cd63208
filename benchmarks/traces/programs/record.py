#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records on a GPU what the programs of unseen.py ask of PyTorch's allocator.

Writes OUTDIR/NAME.csv.gz and prints one line of JSON a trace. `all` runs each program in a process
of its own, so that none finds the cache of another. SEED in the environment changes what is drawn.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import torch

import unseen
from trace_log import peak_of, trace_lines, write_trace

MOST_EVENTS = 8_000_000  # that PyTorch is told to keep
MOST_BYTES = 400_000     # that a compressed trace should have


def record(name, folder, steps):
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    run = unseen.Run(seed=int(os.environ.get("SEED", "0")), steps=steps)
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=MOST_EVENTS)
    torch.cuda.synchronize()
    start = time.monotonic()
    unseen.PROGRAMS[name](run)
    torch.cuda.synchronize()
    seconds = time.monotonic() - start
    stats = torch.cuda.memory_stats()
    history = torch.cuda.memory._snapshot()["device_traces"][0]
    if len(history) >= MOST_EVENTS:
        raise SystemExit(f"{name}: more events than PyTorch keeps")
    lines = list(trace_lines(history))
    path = folder / f"{name}.csv.gz"
    write_trace(lines, path)
    print(json.dumps({
        "trace": name, "events": len(lines), "seconds": round(seconds, 1),
        "requested_peak_mib": round(peak_of(lines) / 2**20, 1),
        "torch_requested_peak_mib": round(stats["requested_bytes.all.peak"] / 2**20, 1),
        "torch_reserved_peak_mib": round(stats["reserved_bytes.all.peak"] / 2**20, 1),
        "gz_bytes": path.stat().st_size}), flush=True)
    if path.stat().st_size > MOST_BYTES:
        print(f"{path}: over {MOST_BYTES} bytes, give it fewer --steps", file=sys.stderr)


def record_all(arguments):
    """Whether one of them failed; the others are recorded all the same."""
    failed = [name for name in unseen.PROGRAMS
              if subprocess.run([sys.executable, __file__, name, *arguments]).returncode]
    if failed:
        print("failed:", *failed, file=sys.stderr)
    return bool(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("all", *unseen.PROGRAMS))
    parser.add_argument("folder", type=pathlib.Path, metavar="OUTDIR")
    parser.add_argument("--steps", type=int, default=0, help="instead of the program's own number")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.name == "all":
        return record_all([str(options.folder), "--steps", str(options.steps)])
    return record(options.name, options.folder, options.steps)


if __name__ == "__main__":
    sys.exit(main())
