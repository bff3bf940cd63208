# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory history as a trace: the log that `bursar replay` reads."""

import gzip

HEADER = "Thread,Time,Action,Pointer,Size,Stream"


def trace_lines(history):
    """The lines of a log. Time is in ms since the first event, a pointer is a number used once, a
    size is what was requested; a block is freed when the allocator may use it again. A block that
    was there before the history began is left out."""
    start, live, streams, serial = None, {}, {}, 0
    for event in history:
        action, address = event["action"], event["addr"]
        if action not in ("alloc", "free_completed"):
            continue
        if start is None:
            start = event["time_us"]
        now = (event["time_us"] - start) // 1000
        if action == "alloc":
            stream = streams.setdefault(event["stream"], len(streams))
            live[address] = serial, event["size"], stream
            yield f"0,{now},allocate,{serial},{event['size']},{stream}"
            serial += 1
        elif address in live:
            number, size, stream = live.pop(address)
            yield f"0,{now},free,{number},{size},{stream}"


def peak_of(lines):
    """The most bytes allocated and not yet freed."""
    now = most = 0
    for line in lines:
        _, _, action, _, size, _ = line.split(",")
        now += int(size) if action == "allocate" else -int(size)
        most = max(most, now)
    return most


def write_trace(lines, path):
    """Compressed, and the same bytes for the same lines."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write("".join(f"{line}\n" for line in (HEADER, *lines)).encode())
