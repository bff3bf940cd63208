#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the benchmarks `latency` and `threads` measured as one table.

usage: table.py [--json FILE] RESULTS.json...

RESULTS is Google Benchmark's JSON; names are WORKLOAD/ARGUMENT/ALLOCATOR. --json keeps all of it in
one file. Each cell is the median of the repetitions and half their interquartile range in percent.

Time is wall time on a GPU. On the simulated device, where nothing waits, it is the CPU time of the
thread: wall time without what other programs take from it.
"""
import argparse
import json
import pathlib
import statistics

YARDSTICK = "pingpong/4096", "tcmalloc"
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
KINDS = ["pingpong", "pingpong_raw", "pingpong_raw_home", "churn", "threads_own_stream",
         "threads_one_stream", "neighbor"]
BUSY = 0.95  # CPU time / wall time of loops that never wait


def read_results(paths):
    """One document of all files; a program whose benchmarks were all filtered out wrote nothing."""
    merged = {"context": {}, "benchmarks": []}
    for path in paths:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        if not text.strip():
            continue
        results = json.loads(text)
        merged["context"] |= results["context"]
        merged["benchmarks"] += results["benchmarks"]
    return merged


def unit_of(workload):
    if workload.startswith("threads"):
        return "M pairs/s"
    return "ns, p99" if workload.startswith("neighbor") else "ns/pair"


def clock_of(results):
    return "cpu_time" if results["context"].get("device") == "sim" else "real_time"


def value_of(workload, run, clock):
    if workload.startswith("threads"):
        return run["pairs_per_second"] / 1e6
    if workload.startswith("neighbor"):
        return run["p99_ns"]
    return run[clock] * NANOSECONDS[run["time_unit"]]


def collect(results):
    """{workload: {allocator: [value of each repetition]}}, in a fixed order."""
    table = {}
    clock = clock_of(results)
    for run in results["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        kind, argument, allocator = run["name"].split("/")[:3]
        workload = f"{kind}/{argument}"
        values = table.setdefault(workload, {}).setdefault(allocator, [])
        values.append(value_of(workload, run, clock))

    def rank(workload):
        kind, argument = workload.split("/")
        return KINDS.index(kind), int(argument)
    return {workload: table[workload] for workload in sorted(table, key=rank)}


def spread(values):
    """Half the interquartile range, as a share of the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / middle


def scaling(table, workload, allocator):
    """Pairs/s beside those of one thread; None where that was not measured."""
    alone = table.get(workload.split("/")[0] + "/1", {}).get(allocator)
    here = table[workload].get(allocator)
    return statistics.median(here) / statistics.median(alone) if alone and here else None


def cell(table, workload, allocator):
    values = table[workload].get(allocator)
    if not values:
        return "-"
    text = f"{statistics.median(values):.4g} ±{spread(values):.0%}"
    if workload.startswith("threads"):
        factor = scaling(table, workload, allocator)
        text += f" x{factor:.2f}" if factor else ""
    return text


def ratio(table, workload):
    """bursar's figure beside the yardstick's: time by time, scaling by scaling."""
    if "bursar" not in table[workload] or workload.startswith("neighbor"):
        return "-"
    if workload.startswith("threads"):
        ours, theirs = (scaling(table, workload, name) for name in ("bursar", "tcmalloc"))
        return f"{ours / theirs:.2f}" if ours and theirs else "-"
    yardstick = table.get(YARDSTICK[0], {}).get(YARDSTICK[1])
    ours = statistics.median(table[workload]["bursar"])
    return f"{ours / statistics.median(yardstick):.1f}" if yardstick else "-"


def rows_of(table):
    allocators = list(dict.fromkeys(name for cells in table.values() for name in cells))
    yield ["workload", "unit", *allocators[:1], "/ tcmalloc", *allocators[1:]]
    for workload in table:
        cells = [cell(table, workload, name) for name in allocators]
        yield [workload, unit_of(workload), *cells[:1], ratio(table, workload), *cells[1:]]


def format_rows(rows):
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        words = [word.ljust(width) if i < 2 else word.rjust(width)
                 for i, (word, width) in enumerate(zip(row, widths))]
        yield "  ".join(words).rstrip()


def notes(results):
    context = results["context"]
    time = "CPU time of the thread" if clock_of(results) == "cpu_time" else "wall time"
    yield (f"device {context.get('device', '?')}, {context.get('num_cpus', '?')} cores, "
           f"{context.get('mhz_per_cpu', '?')} MHz; ns are {time}; median of the repetitions, "
           "± half their interquartile range")
    yield ("/ tcmalloc: bursar's ns / tcmalloc's at pingpong/4096; in rows of threads bursar's "
           "scaling (x) / tcmalloc's")
    loops = [run for run in results["benchmarks"] if run["run_type"] == "iteration"
             and run["name"].startswith(("pingpong", "churn"))]
    if loops:
        share = statistics.median(run["cpu_time"] / run["real_time"] for run in loops)
        if share < BUSY:
            yield f"this machine was busy: the loops had a core for {share:.0%} of their time"
    if any(run.get("pinned") == 0 for run in results["benchmarks"]):
        yield "teams of more threads than cores were not pinned"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("results", nargs="+", metavar="RESULTS.json")
    options = parser.parse_args()
    results = read_results(options.results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    table = collect(results)
    if not table:
        parser.error("nothing was measured")
    print("\n".join([*format_rows(rows_of(table)), *notes(results)]))


if __name__ == "__main__":
    main()
