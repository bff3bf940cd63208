#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws utilization against driver time, a dot for each setting that was replayed.

usage: plot.py PICTURE.svg LABEL=ROWS.json...

Each ROWS.json is what `bursar replay --json` wrote under one setting; rows of `bursar`, first pass,
count. The large panel shows the median over the traces that all settings completed, the small ones
each trace. A line joins what no other setting beats in both, the frontier. Nothing but the standard
library is needed.
"""
import collections
import json
import math
import statistics
import sys
from xml.sax.saxutils import escape

Dot = collections.namedtuple("Dot", "share utilization")  # of the trace's time; 0 to 1
Panel = collections.namedtuple("Panel", "title dots x y width height large")

COLORS = ["#1f6feb", "#d1690e", "#7c5cbf", "#2da44e", "#c2347a", "#8a7a00", "#0e8a8a", "#b3402f"]
GOAL = Dot(0.005, 0.99)
WIDTH, MARGIN, LARGE_HEIGHT, SMALL_HEIGHT, COLUMNS = 1120, 28, 400, 190, 3
LEFT, BOTTOM, TITLE, LEGEND_LINE, MOST_LABEL = 52, 34, 30, 21, 40


def dots_of(rows):
    """{trace: Dot}, None where memory ran out or nobody knows the driver's time."""
    dots = {}
    for row in rows:
        if row["allocator"] != "bursar" or row["pass"] != 1:
            continue
        known = row["completed"] and row["driver_time_us"] is not None
        known = known and row["trace_duration_us"] > 0
        dots[row["trace"]] = Dot(row["driver_time_us"] / row["trace_duration_us"],
                                 row["utilization"]) if known else None
    return dots


def medians(settings):
    """{label: Dot}: over the traces that every setting has."""
    everywhere = [trace for trace in next(iter(settings.values()))
                  if all(dots.get(trace) for dots in settings.values())]
    if not everywhere:
        return {}
    return {label: Dot(statistics.median(dots[trace].share for trace in everywhere),
                       statistics.median(dots[trace].utilization for trace in everywhere))
            for label, dots in settings.items()}


def frontier(dots):
    """What no other beats: by rising time, each with more utilization than all before."""
    best = []
    for dot in sorted(set(dots), key=lambda dot: (dot.share, -dot.utilization)):
        if not best or dot.utilization > best[-1].utilization:
            best.append(dot)
    return best


def steps(low, high, count):
    """Round values from low to high, about so many."""
    power = 10 ** math.floor(math.log10((high - low) / count))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= (high - low) / count)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def text(x, y, content, size=12, anchor="start", fill="#444", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}" font-weight="{weight}">{escape(content)}</text>')


class Scale:
    """From dots to places in a panel; the axes hold all dots, and the goal where it is near."""

    def __init__(self, panel):
        self.panel = panel
        dots = list(panel.dots.values())
        low = min(dot.utilization for dot in dots)
        self.low = math.floor(min(low, GOAL.utilization) * 200 - 0.5) / 200
        self.most = max(max(dot.share for dot in dots), GOAL.share) * 1.12
        self.inner_height = panel.height - TITLE - BOTTOM

    def x(self, share):
        return self.panel.x + LEFT + (self.panel.width - LEFT - 14) * share / self.most

    def y(self, utilization):
        below = (1 - utilization) / (1 - self.low)
        return self.panel.y + TITLE + self.inner_height * below


def axes(panel, scale):
    left, right = scale.x(0), scale.x(scale.most)
    for mark in steps(scale.low, 1, 6 if panel.large else 4):
        y = scale.y(mark)
        yield f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#e4e7eb"/>'
        yield text(left - 7, y + 4, f"{mark:.3f}".rstrip("0").rstrip("."), 11, "end", "#777")
    for mark in steps(0, scale.most, 8 if panel.large else 4):
        yield text(scale.x(mark), scale.y(scale.low) + 17, f"{mark * 100:.3g} %", 11, "middle",
                   "#777")
    x, y = scale.x(GOAL.share), scale.y(GOAL.utilization)
    yield (f'<rect x="{left:.1f}" y="{scale.y(1):.1f}" width="{x - left:.1f}" '
           f'height="{y - scale.y(1):.1f}" fill="#2da44e" fill-opacity=".09"/>')
    if panel.large:
        yield text(left + 6, y - 6, f"goal: {GOAL.utilization} at {GOAL.share * 100:g} %", 11,
                   fill="#1a7f37")


def draw_panel(panel, numbers):
    scale = Scale(panel)
    yield text(panel.x + LEFT, panel.y + 16, panel.title, 14 if panel.large else 12.5, fill="#111",
               weight="600")
    yield from axes(panel, scale)
    line = " ".join(f"{scale.x(dot.share):.1f},{scale.y(dot.utilization):.1f}"
                    for dot in frontier(panel.dots.values()))
    yield f'<polyline points="{line}" fill="none" stroke="#9aa4b1" stroke-width="1.5"/>'
    radius = 10 if panel.large else 6.5
    for label, dot in reversed(panel.dots.items()):  # the first setting on top
        number = numbers[label]
        x, y = scale.x(dot.share), scale.y(dot.utilization)
        told = f"{label}: {dot.utilization:.4f} at {dot.share * 100:.3f} % of the time"
        yield (f'<g><title>{escape(told)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" '
               f'fill="{COLORS[(number - 1) % len(COLORS)]}" stroke="#fff"/>'
               + text(x, y + radius * 0.36, str(number), radius * 1.05, "middle", "#fff", "600")
               + "</g>")


def legend(settings, middle, x, y):
    for number, label in enumerate(settings, 1):
        top = y + LEGEND_LINE * (number - 1)
        yield (f'<circle cx="{x}" cy="{top - 4:.1f}" r="8" '
               f'fill="{COLORS[(number - 1) % len(COLORS)]}"/>')
        yield text(x, top - 0.8, str(number), 9, "middle", "#fff", "600")
        dot = middle.get(label)
        if dot:
            yield text(x + 58, top, f"{dot.utilization:.4f}", 12, "end")
            yield text(x + 114, top, f"{dot.share * 100:.3f} %", 12, "end")
        shown = label if len(label) <= MOST_LABEL else label[:MOST_LABEL - 1] + "\u2026"
        yield text(x + 126, top, shown, 11.5, fill="#111")


def short_name(trace):
    return trace.removesuffix(".gz").removesuffix(".csv")


def panels(settings, middle, legend_height):
    """The large one beside the legend, then the small ones in rows."""
    top, large_height = 70, max(LARGE_HEIGHT, legend_height)
    if middle:
        yield Panel("Median over the traces", middle, MARGIN, top, WIDTH - 2 * MARGIN - 400,
                    large_height, True)
    traces = list(dict.fromkeys(trace for dots in settings.values() for trace in dots))
    width = (WIDTH - 2 * MARGIN) / COLUMNS
    place = 0
    for trace in traces:
        dots = {label: dots[trace] for label, dots in settings.items() if dots.get(trace)}
        if not dots:
            continue
        row, column = divmod(place, COLUMNS)
        place += 1
        yield Panel(short_name(trace), dots, MARGIN + width * column,
                    top + large_height + 16 + SMALL_HEIGHT * row, width, SMALL_HEIGHT, False)


def draw(settings):
    """The picture of {label: {trace: Dot or None}}."""
    middle = medians(settings)
    numbers = {label: i for i, label in enumerate(settings, 1)}
    placed = list(panels(settings, middle, LEGEND_LINE * len(settings) + 40))
    if not placed:
        sys.exit("plot.py: no completed rows of bursar")
    height = max(panel.y + panel.height for panel in placed) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
           f'width="{WIDTH}" height="{height:g}" font-family="system-ui, sans-serif">',
           f'<rect width="{WIDTH}" height="{height:g}" fill="#fff"/>',
           text(MARGIN, 30, "Utilization and what it costs", 18, fill="#111", weight="600"),
           text(MARGIN, 50, "Up: requested peak / reserved peak. Right: time in the driver, as a "
                "share of the trace's own duration. First pass.", 12, fill="#777"),
           *legend(settings, middle, WIDTH - MARGIN - 372, 108)]
    for panel in placed:
        out += draw_panel(panel, numbers)
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    settings = {}
    for argument in sys.argv[2:]:
        label, _, path = argument.rpartition("=")
        with open(path, encoding="utf-8") as file:
            settings[label or path] = dots_of(json.load(file))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(draw(settings))


if __name__ == "__main__":
    main()
