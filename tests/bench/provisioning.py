#!/usr/bin/env python3
"""How many nodes, how many of them only for storage, which chunks: does the predictor find what measuring finds?

  tests/bench/provisioning.py --bin build/release/bin
  tests/bench/provisioning.py --bin build/release/bin --only blast --platform 200mbit=lab.json
  tests/bench/provisioning.py --table --plot plots/

Figures 8, 9 and 11 of the Provisioning paper, smaller. As there, one node is the manager's; of the others,

  blast     on 5 and 8 nodes in all, some only store and the rest only run tasks, times the store's chunk size; no hints
  montage   2, 4 and 8 nodes both store and run tasks, without hints and locations (dss) and with those from the graph (wass)

A cluster has nodes apart by draining the storage nodes of those that run tasks, and ending the mounts of those that store. Runs
are seen, predicted, measured and kept as by accuracy_apps.py. Node seconds are seconds times all nodes, the manager's too, as
`mosa explore` has them. What is best by predictions has a regret: what it takes, measured, more than the best by measurement.
--plot writes blast.svg and montage.svg of what is kept.
"""

import argparse
import pathlib

from accuracy_apps import CHUNKS, Cell, carry_out, do_by_store, parse, with_half
from accuracy_plots import color_of, plot_cost
from accuracy_report import mean_of
from plot_patterns import OTHER_COLORS

PARTS = 12
STORAGE = {5: (1, 2, 3), 8: (1, 2, 4, 6)}  # Of so many nodes, those that only store.
MONTAGE_HOSTS, SYSTEMS = (2, 4, 8), ("dss", "wass")
CHUNK_COLORS = dict(zip(CHUNKS, OTHER_COLORS))
UNITS = ("seconds", "node seconds")


def nodes_of(cell):
    return cell.hosts + cell.storage + 1


def cells_of(arguments):
    blast = [Cell("blast", PARTS, "dss", chunk, nodes - 1 - storage, arguments.rate, storage)
             for nodes, counts in STORAGE.items() for storage in counts for chunk in CHUNKS]
    montage = [Cell("montage", arguments.tiles, system, "1M", hosts, arguments.rate)
               for hosts in MONTAGE_HOSTS for system in SYSTEMS]
    return [cell for cell in blast + montage if arguments.only in (None, cell.application)]


# ---- tables

TITLES = ["APPLICATION", "NODES", "RUN TASKS", "ONLY STORE", "CHUNK", "SYSTEM", "PREDICTED S", "NINE OF TEN", "MEASURED S", "RUNS",
          "ERROR", "IN 90 %", "NODE SECONDS PREDICTED", "MEASURED"]
BEST = ["APPLICATION", "NODES", "LEAST", "BY PREDICTION", "BY MEASUREMENT", "REGRET", "REGRET S", "REGRET NODE SECONDS", "MEAN ERROR"]


def row_of(cell, entry):
    low, high = entry["predicted_interval_s"]
    nodes = nodes_of(cell)
    return [cell.application, nodes, cell.hosts, cell.storage, cell.chunk, cell.system, f"{entry['predicted_s']:.3f}",
            f"{low:.2f} to {high:.2f}", with_half(entry["measured_s"], entry["half_width_s"]), entry["runs"],
            f"{entry['error']:+.1%}", "yes" if entry["inside"] else "no", f"{entry['predicted_s'] * nodes:.2f}",
            f"{entry['measured_s'] * nodes:.2f}"]


def choice_of(cell):
    how = f"{cell.hosts} run tasks, {cell.storage} store, {cell.chunk}" if cell.storage else f"{cell.hosts} do both, {cell.system}"
    return f"{nodes_of(cell)} nodes: {how}"


def best_row(application, nodes, unit, pairs):
    def amount(pair, key, of_unit):
        cell, entry = pair
        return entry[key] * (nodes_of(cell) if of_unit == "node seconds" else 1)

    chosen, best = (min(pairs, key=lambda pair: amount(pair, key, unit)) for key in ("predicted_s", "measured_s"))
    more = {each: amount(chosen, "measured_s", each) - amount(best, "measured_s", each) for each in UNITS}
    return [application, nodes, unit, choice_of(chosen[0]), choice_of(best[0]),
            f"{more[unit] / amount(best, 'measured_s', unit):.1%}", *(f"{more[each]:+.3f}" for each in UNITS),
            f"{mean_of(abs(entry['error']) for _, entry in pairs):.1%}"]


def best_rows(pairs):
    """Among equally many nodes, what takes the least seconds takes the least node seconds, too."""
    rows = []
    for application in dict.fromkeys(cell.application for cell, _ in pairs):
        of_it = [pair for pair in pairs if pair[0].application == application]
        for nodes in sorted({nodes_of(cell) for cell, _ in of_it}):
            rows.append(best_row(application, nodes, UNITS[0], [pair for pair in of_it if nodes_of(pair[0]) == nodes]))
        rows += [best_row(application, "any", unit, of_it) for unit in UNITS]
    return rows


# ---- plots

def plot_all(pairs, directory):
    directory.mkdir(parents=True, exist_ok=True)
    blast, montage = {}, {}
    for cell, entry in pairs:
        if cell.application == "blast":
            curves, curve, number = blast.setdefault(f"{nodes_of(cell)} nodes", {}), cell.chunk, cell.storage
        else:
            curves, curve, number = montage.setdefault(f"{cell.size} tiles", {}), cell.system, cell.hosts
        curves.setdefault(curve, []).append((number, nodes_of(cell), entry))
    if blast:
        plot_cost("BLAST", "nodes that only store", blast, CHUNK_COLORS, directory / "blast.svg")
    if montage:
        colors = {system: color_of(system) for system in SYSTEMS}
        plot_cost("Montage", "nodes that run tasks and store", montage, colors, directory / "montage.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=pathlib.Path, metavar="DIR", help="write SVGs there")
    # Each cell has hosts of its own.
    arguments = parse(parser, hosts=None, tiles=49, queries=24, draws=20, out=pathlib.Path("provisioning.out"))

    def show_all(entries, show):
        pairs = [(Cell(**entry["cell"]), entry) for entry in entries]
        show(TITLES, [row_of(*pair) for pair in pairs])
        show(BEST, best_rows(pairs))
        if arguments.plot:
            plot_all(pairs, arguments.plot)

    carry_out("provisioning.py", arguments, cells_of(arguments), dict.fromkeys(("blast", "montage"), do_by_store), show_all)


if __name__ == "__main__":
    main()
