#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws each trace's utilization under each allocator, from the rows of `bursar replay --json`.

usage: plot.py ROWS.json PICTURE.svg

Of several passes the worst is drawn. Nothing but the standard library is needed.
"""
import json
import sys
from xml.sax.saxutils import escape

COLORS = ["#1f6feb", "#b0b7c3", "#e3a008", "#7c5cbf", "#2da44e"]
BAR, BAR_GAP, GROUP_GAP = 26, 4, 34
LEFT, TOP, HEIGHT, BOTTOM = 56, 84, 260, 64
TICKS = [0, 0.25, 0.5, 0.75, 1]


def lowest_utilization(rows):
    """{trace: {allocator: utilization}}, in the order of the rows; None where a pass ran out."""
    table = {}
    for row in rows:
        cells = table.setdefault(row["trace"], {})
        name = row["allocator"]
        if not row["completed"] or cells.get(name, 1.0) is None:
            cells[name] = None
        else:
            cells[name] = min(cells.get(name, 1.0), row["utilization"])
    return table


def short_name(trace):
    first, *others = trace.split("+")
    first = first.removesuffix(".gz").removesuffix(".csv")
    return f"{first} + {len(others)} more" if others else first


def text(x, y, content, size=12, anchor="middle", fill="#444", weight="normal"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
            f'font-weight="{weight}">{escape(content)}</text>')


def grid(width):
    for tick in TICKS:
        y = TOP + HEIGHT * (1 - tick)
        yield f'<path d="M{LEFT} {y:g}H{width - 16:g}" stroke="#e4e7eb"/>'
        yield text(LEFT - 8, y + 4, f"{tick:g}", anchor="end")


def legend(allocators):
    x = LEFT
    for name, color in allocators.items():
        label = f"{name} (stand-in)" if name == "segment_cache" else name
        yield f'<rect x="{x:g}" y="46" width="12" height="12" rx="2" fill="{color}"/>'
        yield text(x + 18, 56, label, anchor="start")
        x += 40 + 7.2 * len(label)


def group(x, trace, cells, allocators):
    width = len(allocators) * (BAR + BAR_GAP) - BAR_GAP
    yield text(x + width / 2, TOP + HEIGHT + 20, short_name(trace))
    for i, (name, color) in enumerate(allocators.items()):
        if name not in cells:
            continue
        left, value = x + i * (BAR + BAR_GAP), cells[name]
        if value is None:
            yield text(left + BAR / 2, TOP + HEIGHT - 6, "out", size=10, fill="#c0392b")
            continue
        top = TOP + HEIGHT * (1 - value)
        yield (f'<rect x="{left:g}" y="{top:.1f}" width="{BAR}" height="{HEIGHT * value:.1f}" '
               f'rx="2" fill="{color}"><title>{escape(trace)}, {escape(name)}: {value:.4f}</title>'
               '</rect>')
        yield text(left + BAR / 2, top - 5, f"{value:.3f}".removeprefix("0"), size=10)


def draw(rows):
    table = lowest_utilization(rows)
    names = list(dict.fromkeys(row["allocator"] for row in rows))
    allocators = {name: COLORS[i % len(COLORS)] for i, name in enumerate(names)}
    labels = max(len(short_name(trace)) for trace in table) * 6.6
    step = max(len(names) * (BAR + BAR_GAP) + GROUP_GAP, labels + 16)
    width = LEFT + 24 + step * len(table)
    height = TOP + HEIGHT + BOTTOM
    devices = ", ".join(dict.fromkeys(row["device"] for row in rows))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" '
             f'width="{width:g}" height="{height}" font-family="system-ui, sans-serif">',
             f'<rect width="{width:g}" height="{height}" fill="#fff"/>',
             text(LEFT, 26, "Utilization: peak bytes requested / peak bytes reserved", size=16,
                  anchor="start", fill="#111", weight="600"),
             *legend(allocators), *grid(width)]
    bars = len(names) * (BAR + BAR_GAP) - BAR_GAP
    for i, (trace, cells) in enumerate(table.items()):
        parts += group(LEFT + 12 + step * i + (step - bars) / 2, trace, cells, allocators)
    parts += [text(LEFT, height - 14, f"device: {devices}; worst pass of each; 1 is the best there "
                   "can be", size=11, anchor="start", fill="#777"), "</svg>"]
    return "\n".join(parts) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = json.load(file)
    if not rows:
        sys.exit("plot.py: no rows")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw(rows))


if __name__ == "__main__":
    main()
