"""Plots of what accuracy.py has kept, as SVG: measured beside predicted, after Figures 5 to 7 of paper 000.

Of each pattern a file with whole runs, and one with its stages; a panel for each number of hosts and size. Whiskers: of
what was measured the 95 % interval of the mean, of a prediction the interval that is to hold nine of ten runs.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "python"))

from plot_patterns import COLORS, LEFT, PANEL_HEIGHT, PANEL_WIDTH, RIGHT, SIZES, Panel, Svg, title_of  # noqa: E402

Pair = collections.namedtuple("Pair", "labels color measured_s measured_interval predicted_s predicted_interval")
BAR_MOST, PAIR_LEAST, PAGE_LEAST = 26, 58, 700  # Pixels.


def color_of(system):
    return COLORS[system.partition("-")[0]]


def percent(error):
    return f"{round(error, 2) + 0.0:+.0%}"  # Never "-0%".


def whole_runs(entry):
    half = entry["half_width_s"] or 0
    system = entry["cell"]["system"] + ("" if entry["settled"] else "?")
    return [Pair((system, percent(entry["error"])), color_of(entry["cell"]["system"]), entry["measured_s"],
                 (entry["measured_s"] - half, entry["measured_s"] + half), entry["predicted_s"], entry["predicted_interval_s"])]


def stages(entry):
    return [Pair((stage["stage"], entry["cell"]["system"], percent(stage["error"])), color_of(entry["cell"]["system"]),
                 stage["measured_s"], None, stage["predicted_s"], None) for stage in entry["stages"]]


def draw_pair(panel, x, width, pair):
    """Measured at the left, solid; predicted at the right, light."""
    for left, seconds, interval, color in ((x - width, pair.measured_s, pair.measured_interval, pair.color),
                                           (x, pair.predicted_s, pair.predicted_interval, pair.color + "60")):
        panel.svg.box(left, panel.y(seconds), width - 1, panel.y(0) - panel.y(seconds), color)
        if interval and interval[0] < interval[1]:
            panel.svg.whisker(left + (width - 1) / 2, panel.y(max(interval[0], 0)), panel.y(interval[1]))
    for row, label in enumerate(pair.labels):
        panel.label(x, label, row=row)


def plot(title, legend, panels, target):
    """panels: pairs by (hosts, size, scale)."""
    rows = sorted({hosts for hosts, _, _ in panels})
    columns = sorted({(SIZES.index(size), scale) for _, size, scale in panels})
    width = max(PANEL_WIDTH, PAGE_LEAST // len(columns), LEFT + RIGHT + PAIR_LEAST * max(map(len, panels.values())))
    svg = Svg(width * len(columns), PANEL_HEIGHT * len(rows) + 42, title)
    svg.text(svg.width - 14, 20, legend, anchor="end", color="#777")
    for (hosts, size, scale), pairs in panels.items():
        most = max(max(p.measured_s, p.predicted_s, *(p.measured_interval or ()), *(p.predicted_interval or ())) for p in pairs)
        panel = Panel(svg, columns.index((SIZES.index(size), scale)), f"{title_of(size, scale)}, {hosts} hosts", most,
                      row=rows.index(hosts), width=width)
        place = (panel.x1 - panel.x0) / len(pairs)
        for i, pair in enumerate(pairs):
            draw_pair(panel, panel.slot(i, len(pairs)), min(BAR_MOST, place * 0.36), pair)
    svg.write(target)


def plot_all(entries, directory):
    """The paths of the files that were written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for pattern in sorted({entry["cell"]["pattern"] for entry in entries}):
        for name, what, legend, pairs_of in (
                ("", "", "solid: measured, mean and its 95 %, ? undecided; light: predicted, nine of ten", whole_runs),
                ("-stages", ", stage by stage", "solid: measured; light: predicted", stages)):
            panels = collections.defaultdict(list)
            for entry in entries:
                cell = entry["cell"]
                if cell["pattern"] == pattern:
                    panels[cell["hosts"], cell["size"], cell["scale"]] += pairs_of(entry)
            written.append(directory / f"{pattern}{name}.svg")
            plot(f"{pattern.capitalize()}{what}", legend, panels, written[-1])
    return written
