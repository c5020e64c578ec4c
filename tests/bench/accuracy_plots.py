"""Plots of what accuracy.py has kept, as SVG: measured beside predicted, after Figures 5 to 7 of the Provisioning paper; and of what
provisioning.py has, after Figures 8, 9 and 11.

Of each pattern a file with whole runs, and one with its stages; a panel for each number of hosts, each size and each store.
Where one workload is there for more than two numbers of hosts with links of one rate, curves over hosts instead of a file of
many panels. Whiskers: of what was measured the 95 % interval of the mean, of a prediction the interval that is to hold nine of
ten runs.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "python"))

from accuracy_cells import Cell  # noqa: E402
from accuracy_report import place_of  # noqa: E402
from plot_patterns import (  # noqa: E402
    COLORS,
    LEFT,
    PANEL_HEIGHT,
    PANEL_WIDTH,
    RIGHT,
    SIZES,
    Panel,
    Svg,
    draw_series,
    legend as color_legend,
    title_of,
)

Pair = collections.namedtuple("Pair", "labels color measured_s measured_interval predicted_s predicted_interval")
BAR_MOST, PAIR_LEAST, PAGE_LEAST = 26, 58, 700  # Pixels.


def color_of(system):
    """Of GlusterFS's, too: whole files hashed over hosts are placed without hints, as under dss."""
    name = system.partition("-")[0]
    return COLORS[{"dht": "dss", "nufa": "wass"}.get(name, name)]


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
    """panels: pairs by (hosts, place, size, scale). A row for hosts at one place."""
    rows = collections.defaultdict(list)
    for key in sorted(panels, key=lambda key: (key[1], key[0], SIZES.index(key[2]), key[3])):
        rows[key[1], key[0]].append(key)
    columns = max(map(len, rows.values()))
    width = max(PANEL_WIDTH, PAGE_LEAST // columns, LEFT + RIGHT + PAIR_LEAST * max(map(len, panels.values())))
    svg = Svg(width * columns, PANEL_HEIGHT * len(rows) + 42, title)
    svg.text(svg.width - 14, 20, legend, anchor="end", color="#777")
    for row, keys in enumerate(rows.values()):
        for column, key in enumerate(keys):
            hosts, place, size, scale = key
            pairs = panels[key]
            panel = Panel(svg, column, f"{title_of(size, scale)}, {hosts} hosts, {place}", most_of(pairs), row=row, width=width)
            slot_width = (panel.x1 - panel.x0) / len(pairs)
            for i, pair in enumerate(pairs):
                draw_pair(panel, panel.slot(i, len(pairs)), min(BAR_MOST, slot_width * 0.36), pair)
    svg.write(target)


def most_of(pairs):
    return max(max(p.measured_s, p.predicted_s, *(p.measured_interval or ()), *(p.predicted_interval or ())) for p in pairs)


def plot_bars(pattern, cells, directory):
    """cells: (Cell, entry)."""
    for name, what, legend, pairs_of in (
            ("", "", "solid: measured, mean and its 95 %, ? undecided; light: predicted, nine of ten", whole_runs),
            ("-stages", ", stage by stage", "solid: measured; light: predicted", stages)):
        panels = collections.defaultdict(list)
        for cell, entry in cells:
            panels[cell.hosts, place_of(cell), cell.size, cell.scale] += pairs_of(entry)
        yield directory / f"{pattern}{name}.svg"
        plot(f"{pattern.capitalize()}{what}", legend, panels, directory / f"{pattern}{name}.svg")


def number_axis(panel, numbers, name):
    """Along the panel, from zero. Says where a number is."""
    pixels = (panel.x1 - panel.x0) / (max(numbers) * 1.05)
    for number in numbers:
        panel.label(panel.x0 + number * pixels, str(number))
    panel.svg.text((panel.x0 + panel.x1) / 2, panel.y0 + 31, name, anchor="middle")
    return lambda number: panel.x0 + number * pixels


def plot_scaling(groups, directory):
    """Seconds over hosts. groups: [(pattern, place, size, scale), [(Cell, entry)...]]; a panel for each."""
    width = max(PANEL_WIDTH, PAGE_LEAST // len(groups))
    svg = Svg(width * len(groups), PANEL_HEIGHT + 42, "Over hosts: solid measured, with its 95 %; light predicted")
    colors = {}
    for index, ((pattern, place, size, scale), cells) in enumerate(groups):
        most = max(max(e["measured_s"] + (e["half_width_s"] or 0), e["predicted_s"]) for _, e in cells)
        panel = Panel(svg, index, f"{pattern}, {title_of(size, scale)}, {place}", most, width=width)
        x_of = number_axis(panel, {cell.hosts for cell, _ in cells}, "hosts")
        by_system = collections.defaultdict(list)
        for cell, entry in sorted(cells, key=lambda each: each[0].hosts):
            by_system[cell.system.partition("-")[0]].append((x_of(cell.hosts), entry))
        for system, points in by_system.items():
            color = colors[system] = color_of(system)
            xs = [x for x, _ in points]
            draw_series(svg, panel, xs, [(e["measured_s"], e["half_width_s"] or 0) for _, e in points], color)
            draw_series(svg, panel, xs, [(e["predicted_s"], 0) for _, e in points], color + "60")
            for x, entry in points:
                above = panel.y(max(entry["predicted_s"], entry["measured_s"] + (entry["half_width_s"] or 0))) - 6
                svg.text(x, above, percent(entry["error"]), anchor="middle", size=9, color=color)
    color_legend(svg, list(colors.items()))
    svg.write(directory / "scaling.svg")


def plot_cost(title, axis, panels, colors, target):
    """Seconds, and below them node seconds. panels: {title: {curve: [(number on the axis, nodes, entry)...]}}."""
    width = max(PANEL_WIDTH, PAGE_LEAST // len(panels))
    svg = Svg(width * len(panels), 2 * PANEL_HEIGHT + 42, f"{title}: points measured, with their 95 %; lines predicted")
    for row, unit in enumerate(("seconds", "node seconds")):
        for column, (name, curves) in enumerate(panels.items()):
            points = [(curve, number, nodes if row else 1, entry) for curve, along in curves.items()
                      for number, nodes, entry in sorted(along, key=lambda point: point[0])]
            most = max(factor * max(e["measured_s"] + (e["half_width_s"] or 0), e["predicted_s"]) for *_, factor, e in points)
            panel = Panel(svg, column, name, most, row=row, width=width, unit=unit)
            x_of = number_axis(panel, sorted({number for _, number, *_ in points}), axis)
            before = {}
            for curve, number, factor, entry in points:
                x = x_of(number) + 5 * (list(colors).index(curve) - (len(colors) - 1) / 2)  # Beside the others' whiskers.
                half = (entry["half_width_s"] or 0) * factor
                draw_series(svg, panel, [x], [(entry["measured_s"] * factor, half)], colors[curve])
                now = (x, panel.y(entry["predicted_s"] * factor))
                svg.line(*before.get(curve, now), *now, color=colors[curve], width=2)
                before[curve] = now
    color_legend(svg, list(colors.items()))
    svg.write(target)


def plot_all(entries, directory):
    """The paths of the files that were written."""
    directory.mkdir(parents=True, exist_ok=True)
    curves, bars = collections.defaultdict(list), collections.defaultdict(list)
    for entry in entries:
        cell = Cell(**entry["cell"])
        curves[cell.pattern, place_of(cell), cell.size, cell.scale].append((cell, entry))
    for key, cells in list(curves.items()):
        if len({cell.hosts for cell, _ in cells}) <= 2:
            bars[key[0]] += curves.pop(key)
    written = [path for pattern in sorted(bars) for path in plot_bars(pattern, bars[pattern], directory)]
    if curves:
        plot_scaling(list(curves.items()), directory)
        written.append(directory / "scaling.svg")
    return written
