#!/usr/bin/env python3
"""Plots of what `mosa bench patterns` measured, as SVG: one file per pattern, after Figures 2 to 6 of the Opportunity Study.

  tools/python/plot_patterns.py patterns.json plots/

Bars and points are means, whiskers the 95 % interval. Staging is stacked on a bar in grey, as it is no part of the
comparison. Broadcast has time over copies, and its phases in a file of their own.
"""

import argparse
import html
import json
import math
import pathlib
import statistics
import sys

SIZES = ("small", "medium", "large")
PANEL_WIDTH, PANEL_HEIGHT = 330, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 46
COLORS = {"dss": "#c44e52", "wass": "#2a6f97", "local": "#6a994e"}
OTHER_COLORS = ("#8c6bb1", "#d08c2e", "#5a5a5a")
STAGING = "#c9c9c9"
WRITING, READING = "#d08c2e", "#8c6bb1"


class Svg:
    """Elements of one picture."""

    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.parts = []
        self.text(14, 20, title, size=15, weight="bold")

    def text(self, x, y, text, *, size=11, anchor="start", color="#222", weight="normal", turn=None):
        turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn is not None else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" '
                          f'font-weight="{weight}"{turned}>{html.escape(text)}</text>')

    def line(self, x1, y1, x2, y2, *, color="#222", width=1.0, dash=None):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
                          f'stroke-width="{width}"{dashes}/>')

    def box(self, x, y, width, height, color):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}" '
                          f'fill="{color}"/>')

    def path(self, points, color):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="2"/>')
        for x, y in points:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')

    def whisker(self, x, low, high, color="#222"):
        self.line(x, low, x, high, color=color)
        for y in (low, high):
            self.line(x - 4, y, x + 4, y, color=color)

    def write(self, path):
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" font-family="Helvetica, Arial, sans-serif">\n'
            f'<rect width="{self.width}" height="{self.height}" fill="white"/>\n' + "\n".join(self.parts) +
            "\n</svg>\n", encoding="utf-8")


def nice_step(most):
    """A step of 1, 2 or 5 times a power of ten that gives four to ten ticks."""
    raw = most / 5
    power = 10 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)


class Panel:
    """Seconds, or what `unit` says, upwards from zero, over one size."""

    def __init__(self, svg, index, title, most, *, row=0, width=PANEL_WIDTH, unit="seconds"):
        self.svg = svg
        self.x0 = index * width + LEFT
        self.x1 = (index + 1) * width - RIGHT
        self.y0 = 30 + (row + 1) * PANEL_HEIGHT - BOTTOM
        self.y1 = 30 + row * PANEL_HEIGHT + TOP
        step = nice_step(max(most, 1e-6) * 1.12)
        self.top = math.ceil(most * 1.12 / step) * step
        svg.text((self.x0 + self.x1) / 2, self.y1 - 12, title, size=12, anchor="middle", weight="bold")
        for i in range(round(self.top / step) + 1):
            y = self.y(i * step)
            svg.line(self.x0, y, self.x1, y, color="#e4e4e4" if i else "#222")
            svg.text(self.x0 - 6, y + 4, f"{i * step:.6g}", anchor="end", size=10)
        if index == 0:
            svg.text(16, (self.y0 + self.y1) / 2, unit, anchor="middle", turn=-90)

    def y(self, seconds):
        return self.y0 - (self.y0 - self.y1) * seconds / self.top

    def slot(self, i, count):
        """The middle of the i-th of `count` places along the axis."""
        return self.x0 + (self.x1 - self.x0) * (i + 0.5) / count

    def label(self, x, text, *, row=0):
        self.svg.text(x, self.y0 + 15 + 13 * row, text, anchor="middle", size=10)


def summary(cell, phase="stages"):
    """(mean, half of the interval) of a phase; half is 0 if it is not known."""
    known = cell["seconds"].get(phase)
    return (known["mean"], known["half_width"] or 0) if known else (0, 0)


def color_of(cell, cells):
    name = cell["system"].split("-")[0] if cell["copies"] else cell["system"]
    if name in COLORS:
        return COLORS[name]
    others = sorted({c["system"] for c in cells if not c["copies"] and c["system"] not in COLORS})
    return OTHER_COLORS[others.index(name) % len(OTHER_COLORS)]


def by_size(cells, pattern):
    """Cells of a pattern as a list of (size, scale, cells)."""
    groups = {}
    for cell in cells:
        if cell["pattern"] == pattern and cell["runs"]:
            groups.setdefault((SIZES.index(cell["size"]), cell["scale_millionths"]), []).append(cell)
    return [(SIZES[size], scale / 1e6, group) for (size, scale), group in sorted(groups.items())]


def title_of(size, scale):
    return size if scale == 1 else f"{size} x {scale:g}"


def plot_bars(pattern, groups, hosts, target):
    svg = Svg(PANEL_WIDTH * len(groups), PANEL_HEIGHT + 42, f"{pattern.capitalize()}, {hosts} hosts")
    staged = False
    for index, (size, scale, cells) in enumerate(groups):
        totals = [sum(summary(cell, phase)[0] for phase in ("stages", "stage-in", "stage-out")) for cell in cells]
        most = max(total + summary(cell)[1] for total, cell in zip(totals, cells))
        panel = Panel(svg, index, title_of(size, scale), most)
        width = min(46, (panel.x1 - panel.x0) / len(cells) * 0.62)
        for i, cell in enumerate(cells):
            x = panel.slot(i, len(cells))
            mean, half = summary(cell)
            below = 0
            for phase, color in (("stages", color_of(cell, cells)), ("stage-in", STAGING), ("stage-out", STAGING)):
                seconds = summary(cell, phase)[0]
                staged = staged or (phase != "stages" and seconds > 0)
                svg.box(x - width / 2, panel.y(below + seconds), width, panel.y(below) - panel.y(below + seconds), color)
                below += seconds
            svg.whisker(x, panel.y(max(mean - half, 0)), panel.y(mean + half))
            panel.label(x, cell["system"])
            panel.label(x, f"{mean:.3g} s", row=1)
    if staged:
        svg.text(svg.width - 14, 20, "grey: staging, apart", anchor="end", color="#777")
    svg.write(target)


def legend(svg, names):
    """names: (name, color), at the right of the title."""
    x = svg.width - 14
    for name, color in reversed(names):
        svg.text(x, 20, name, anchor="end", color=color, weight="bold")
        x -= 7 * len(name) + 16
        svg.line(x + 2, 16, x + 12, 16, color=color, width=3)
        x -= 10


def draw_series(svg, panel, xs, points, color):
    """points: (mean, half) in the order of xs."""
    svg.path([(x, panel.y(mean)) for x, (mean, _) in zip(xs, points)], color)
    for x, (mean, half) in zip(xs, points):
        if half > 0:
            svg.whisker(x, panel.y(max(mean - half, 0)), panel.y(mean + half), color)


def plot_broadcast(groups, hosts, target):
    svg = Svg(PANEL_WIDTH * len(groups), PANEL_HEIGHT + 42, f"Broadcast over copies, {hosts} hosts")
    names = {}
    for index, (size, scale, cells) in enumerate(groups):
        most = max(sum(summary(cell)) for cell in cells)
        panel = Panel(svg, index, title_of(size, scale), most)
        copies = sorted((cell for cell in cells if cell["copies"]), key=lambda cell: cell["copies"])
        for cell in cells:
            if cell["copies"]:
                continue
            mean, half = summary(cell)
            color = color_of(cell, cells)
            svg.box(panel.x0, panel.y(mean + half), panel.x1 - panel.x0,
                    panel.y(max(mean - half, 0)) - panel.y(mean + half), color + "30")
            svg.line(panel.x0, panel.y(mean), panel.x1, panel.y(mean), color=color, width=2, dash="6 3")
            names.setdefault(cell["system"], color)
        if copies:
            xs = [panel.slot(i, len(copies)) for i in range(len(copies))]
            draw_series(svg, panel, xs, [summary(cell) for cell in copies], COLORS["wass"])
            names["wass"] = COLORS["wass"]
            for x, cell in zip(xs, copies):
                panel.label(x, str(cell["copies"]))
            svg.text((panel.x0 + panel.x1) / 2, panel.y0 + 31, "copies", anchor="middle")
    legend(svg, list(names.items()))
    svg.write(target)


def stage_seconds(cell, stage):
    seconds = [s["seconds"] for run in cell["runs"] for s in run["tasks_by_stage"] if s["stage"] == stage]
    return statistics.mean(seconds) if seconds else 0


def plot_phases(groups, hosts, target):
    svg = Svg(PANEL_WIDTH * len(groups), PANEL_HEIGHT + 42, f"Broadcast's phases over copies, {hosts} hosts")
    for index, (size, scale, cells) in enumerate(groups):
        copies = sorted((cell for cell in cells if cell["copies"]), key=lambda cell: cell["copies"])
        panel = Panel(svg, index, title_of(size, scale), max(sum(summary(cell)) for cell in copies))
        xs = [panel.slot(i, len(copies)) for i in range(len(copies))]
        draw_series(svg, panel, xs, [summary(cell) for cell in copies], COLORS["wass"])
        for stage, color in (("write", WRITING), ("read", READING)):
            draw_series(svg, panel, xs, [(stage_seconds(cell, stage), 0) for cell in copies], color)
        for x, cell in zip(xs, copies):
            panel.label(x, str(cell["copies"]))
        svg.text((panel.x0 + panel.x1) / 2, panel.y0 + 31, "copies", anchor="middle")
    legend(svg, [("both", COLORS["wass"]), ("write and copy", WRITING), ("read", READING)])
    svg.write(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path, help="the --output of mosa bench patterns")
    parser.add_argument("directory", type=pathlib.Path, help="where the plots go; made if absent")
    arguments = parser.parse_args()
    try:
        results = json.loads(arguments.results.read_text(encoding="utf-8"))
        cells, hosts = results["cells"], len(results["configuration"]["hosts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"plot_patterns: {arguments.results} is no result of 'mosa bench patterns': {error}")
    arguments.directory.mkdir(parents=True, exist_ok=True)
    written = []
    for pattern in ("pipeline", "reduce", "scatter", "gather"):
        groups = by_size(cells, pattern)
        if groups:
            written.append(arguments.directory / f"{pattern}.svg")
            plot_bars(pattern, groups, hosts, written[-1])
    groups = by_size(cells, "broadcast")
    if groups:
        written.append(arguments.directory / "broadcast.svg")
        plot_broadcast(groups, hosts, written[-1])
        copied = [group for group in groups if any(cell["copies"] for cell in group[2])]
        if copied:
            written.append(arguments.directory / "broadcast-phases.svg")
            plot_phases(copied, hosts, written[-1])
    for path in written:
        print(path)


if __name__ == "__main__":
    main()
