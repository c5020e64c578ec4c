#!/usr/bin/env python3
"""How right the predictor is for real applications, and whether its advice comes true.

  tests/bench/accuracy_apps.py --bin build/release/bin
  tests/bench/accuracy_apps.py --bin build/release/bin --only montage --tiles 49
  tests/bench/accuracy_apps.py --cells applications.jsonl --table

Montage and BLAST are Debian's programs, run as tools/workflows does. Each is seen once on a cluster of one host without
links, one task at a time: that is the workload. `mosa identify` measures the platform once, on three other hosts. Then
everything is predicted and written into --output before the first run that it predicts:

  montage   without hints and locations (dss), with those from the graph (wass), and with the hints that `mosa advise` gives
            (advised), with the gain that it promises; runs in turns, of which each turn has its gain
  blast     parts of the queries times the store's chunk size: is the fastest of them found?

Cells are kept in --cells as accuracy.py keeps its own, whose errors these are too; the same command goes on after Ctrl-C,
another one (another --ram, say) in a directory of its own.
Each cell has the processor seconds of one prediction and of the run that it predicts.
"""

import argparse
import collections
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from accuracy import DRAWS_MIN, by_load, predicted_links  # noqa: E402
from accuracy_report import mean_of, to_markdown  # noqa: E402
from accuracy_stores import Mosa  # noqa: E402
from advise import advise, jobs_of  # noqa: E402
from applications import Application, run_in_turns  # noqa: E402
from cluster import check, print_table, why_not  # noqa: E402
from harness import TROUBLE, Kept, build_of, digest, end_as_interrupted, platform_of, run  # noqa: E402
from processors import CPU_TITLES, TIMES, cpu_row, prediction_cpu_s, times  # noqa: E402

# `hosts` run tasks. With `storage`, so many further ones store; else they do.
Cell = collections.namedtuple("Cell", "application size system chunk hosts rate storage", defaults=(0,))
MONTAGE = {"dss": "dss", "wass": "by_itself", "advised": "advised"}  # As advise.py names them.
PARTS, CHUNKS = (4, 6, 12), ("64K", "256K", "1M")
# Of 2 to 20 values; of more it is less.
STUDENT_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09)
TOTAL, STAGE, BYTES, SWEEP, REGRET = 0.07, 0.15, 0.02, 0.10, 0.03


def half_width(values):
    """Of the mean's 95 % interval; None for one value."""
    if len(values) < 2:
        return None
    return STUDENT_95[min(len(values), 20) - 2] * statistics.stdev(values) / len(values) ** 0.5


def cells_of(arguments):
    fixed = (arguments.hosts, arguments.rate)
    montage = [Cell("montage", arguments.tiles, system, "1M", *fixed) for system in MONTAGE]
    blast = [Cell("blast", parts, "wass", chunk, *fixed) for chunk in CHUNKS for parts in PARTS]
    return [cell for cell in montage + blast if arguments.only in (None, cell.application)]


def settings_of(arguments, cell):
    """What a cell's figures depend on besides the cell and the programs."""
    return {"ram": arguments.ram, "draws": arguments.draws, "queries": arguments.queries if cell.application == "blast" else None,
            "platform_given": {rate: digest(path.read_bytes()) for rate, path in arguments.platform.items()}}


# ---- one cell

def name_of(cell):
    return "-".join(map(str, cell if cell.storage else cell[:-1]))


def predict(arguments, cell, platform, seen, *more):
    config = f"hosts={cell.hosts},storage={cell.storage},manager=apart,slots=1,chunk={cell.chunk}"
    config += f",system={'dss' if cell.system == 'dss' else 'wass'}"
    words = [arguments.bin / "mosa", "--json", "predict", "--platform", platform, *seen, "--config", config, *more]
    path = arguments.out / f"{name_of(cell)}.prediction.json"
    if path.exists():  # It was made before the runs that are there.
        return json.loads(path.read_text(encoding="utf-8"))
    predicted = json.loads(run(*words, "--repeats", arguments.draws))
    check(not predicted["failure"], f"the prediction is that it fails: {predicted['failure']}")
    check(predicted["draws_failed"] == 0, f"in {predicted['draws_failed']} draws it would fail: {predicted['draw_failure']}")
    used = prediction_cpu_s(lambda repeats: run(*words, "--repeats", repeats), arguments.draws)
    facts = {"file": path.name, **used, "prediction": predicted}
    path.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def compare(facts, runs, notice_s):
    """What is kept of a cell; of `facts` what predict() says."""
    predicted = facts["prediction"]
    stages = {stage["name"]: stage for stage in predicted["stages"]}
    check(stages.keys() == runs[0]["stages"].keys(), f"stages {list(stages)} are predicted, and {list(runs[0]['stages'])} ran")
    # A run is measured from its first start to the last end that is noticed, as accuracy.py does.
    shift = max(s["end_s"] for s in stages.values()) - min(s["start_s"] for s in stages.values())
    shift += notice_s - predicted["turnaround_s"]
    low, high = (limit + shift for limit in predicted["turnaround_interval_s"])
    total, seconds = predicted["turnaround_mean_s"] + shift, [each["seconds"] for each in runs]
    measured = mean_of(seconds)
    parts = [{"stage": name, "predicted_s": stage["mean_s"] + notice_s, "measured_s": mean_of(r["stages"][name] for r in runs)}
             for name, stage in stages.items()]
    loads = [sum(by_load([dict(enumerate(link)) for link in each["links"].values()], (0, 1)), []) for each in runs]
    links = {"predicted": predicted_links(predicted), "measured": [mean_of(values) for values in zip(*loads)]}
    network = {key: sum(values) / 2 for key, values in links.items()}
    off = [(p - m) / max(links["measured"]) for p, m in zip(links["predicted"], links["measured"])]
    return {**facts, "prediction": facts["file"], "predicted_s": total, "predicted_interval_s": [low, high], "measured_s": measured,
            "half_width_s": half_width(seconds), "run_seconds": seconds, "runs": len(runs), "error": total / measured - 1,
            "inside": low <= measured <= high,
            "stages": [{**part, "error": part["predicted_s"] / part["measured_s"] - 1} for part in parts],
            "network_bytes": network, "network_error": network["predicted"] / network["measured"] - 1, "links": links,
            "links_error": max(off, key=abs), "run_cpu_s": mean_of(each["cpu_s"] for each in runs)}


# ---- applications

class Bench:
    """What the cells of one command have in common."""

    def __init__(self, arguments, kept):
        self.arguments, self.kept = arguments, kept
        self.platform = platform_of(arguments, arguments.rate, kept.build["programs"], arguments.ram,
                                    lambda: Mosa(arguments.bin, 3, rate=arguments.rate, ram=arguments.ram))
        # Whatever is there, these programs have measured with these settings.
        made_with = [arguments.hosts, arguments.rate, arguments.ram, arguments.queries, arguments.draws,
                     digest(self.platform.read_bytes())]
        arguments.out = arguments.out / kept.build["programs"] / digest(made_with)
        arguments.out.mkdir(parents=True, exist_ok=True)
        self.notice_s = json.loads(self.platform.read_text(encoding="utf-8"))["runner"]["notice_ns"] / 1e9

    def application(self, cell):
        """A cell's, and what is seen of it."""
        arguments = self.arguments
        flags = {"montage": ["--tiles", cell.size],
                 "blast": ["--parts", cell.size, "--queries", arguments.queries]}[cell.application]
        made = Application(arguments.bin / "mosa", arguments.out, cell.application, *flags,
                           name="-".join(map(str, [cell.application, *flags[1::2]])), before=arguments.before, resume=True)
        return made, made.see(arguments.bin, arguments.ram)

    def cluster(self, cell):
        return Mosa(self.arguments.bin, cell.hosts, rate=cell.rate, ram=self.arguments.ram, storage=cell.storage,
                    flags=["--chunk-size", cell.chunk])

    def keep(self, cell, facts, runs, **more):
        entry = {**compare(facts, runs, self.notice_s), **more}
        self.kept.add(cell, entry)
        print(f"{' '.join(map(str, cell))}: predicted {entry['predicted_s']:.3f} s, measured {entry['measured_s']:.3f} s "
              f"({entry['error']:+.1%}), bytes {entry['network_error']:+.1%}", file=sys.stderr, flush=True)


def gains_of(advice, measured):
    gains = []
    for system, name in (("dss", "dss"), ("wass", "by_itself")):
        promised = advice[f"gain_over_{name}"]
        turns = [a["seconds"] - b["seconds"] for a, b in zip(measured[name], measured["advised"])]
        low, high = promised["interval_s"]
        gains.append({"over": system, "promised_s": promised["seconds"], "promised_interval_s": [low, high],
                      "measured_s": mean_of(turns), "turns_s": turns, "half_width_s": half_width(turns),
                      "inside": low <= mean_of(turns) <= high})
    return gains


def do_montage(bench, cells):
    arguments = bench.arguments
    montage, seen = bench.application(cells[0])
    advice, rules = advise(montage, bench.platform, seen, f"hosts={arguments.hosts},manager=apart,slots=1")
    facts = {cell: predict(arguments, cell, bench.platform, seen, *(["--rules", rules] if cell.system == "advised" else []))
             for cell in cells}
    with bench.cluster(cells[0]) as store:
        measured = run_in_turns(store, jobs_of(montage, rules), arguments.repeats)
    for cell in cells:
        more = {"gains": gains_of(advice, measured)} if cell.system == "advised" else {}
        bench.keep(cell, facts[cell], measured[MONTAGE[cell.system]], **more)


def do_by_store(bench, cells):
    """Cells of one application. Those of one store take turns on one cluster."""
    made = {cell.size: bench.application(cell) for cell in {cell.size: cell for cell in cells}.values()}
    facts = {cell: predict(bench.arguments, cell, bench.platform, made[cell.size][1]) for cell in cells}
    by_store = collections.defaultdict(list)
    for cell in cells:
        by_store[cell.hosts, cell.storage, cell.chunk].append(cell)
    for of_store in by_store.values():
        with bench.cluster(of_store[0]) as store:
            jobs = {name_of(cell): (made[cell.size][0], ["--system", cell.system]) for cell in of_store}
            measured = run_in_turns(store, jobs, bench.arguments.repeats)
        for cell in of_store:
            bench.keep(cell, facts[cell], measured[name_of(cell)])


def measure_all(arguments, cells, kept, measure):
    missing = [cell for cell in cells if kept.is_missing(cell)]
    if not missing:
        return
    bench = Bench(arguments, kept)
    for application, do in measure.items():
        of_it = [cell for cell in missing if cell.application == application]
        try:
            if of_it:
                do(bench, of_it)
        except TROUBLE as error:
            print(f"{application}: failed: {error}", file=sys.stderr, flush=True)
            for cell in of_it:
                if kept.is_missing(cell):
                    kept.add(cell, {"failed": str(error)})


# ---- tables

TITLES = ["APPLICATION", "SIZE", "SYSTEM", "CHUNK", "HOSTS", "RATE", "PREDICTED S", "NINE OF TEN", "MEASURED S", "RUNS",
          "ERROR", "IN 90 %", "MB MOVED P/M", "BYTES", "WORST LINK"]
STAGES = ["STAGE", "SYSTEM", "PREDICTED S", "MEASURED S", "ERROR"]
GAINS = ["ADVISED", "PROMISED S", "NINE OF TEN", "MEASURED S", "EACH TURN", "INSIDE"]
CPU = ["APPLICATION", "SIZE", "SYSTEM", "CHUNK", *CPU_TITLES]
AIMS = ["WHAT", "REACHED", "AIM", ""]


def with_half(seconds, half):
    return f"{seconds:.3f}" + (f" ±{half:.3f}" if half is not None else "")


def row_of(entry):
    low, high = entry["predicted_interval_s"]
    return [*list(entry["cell"].values())[:6], f"{entry['predicted_s']:.3f}", f"{low:.2f} to {high:.2f}",
            with_half(entry["measured_s"], entry["half_width_s"]), entry["runs"], f"{entry['error']:+.1%}",
            "yes" if entry["inside"] else "no", " / ".join(f"{b / 1e6:.1f}" for b in entry["network_bytes"].values()),
            f"{entry['network_error']:+.1%}", f"{entry['links_error']:+.1%}"]


def stage_rows(entries):
    return [[stage["stage"], entry["cell"]["system"], f"{stage['predicted_s']:.3f}", f"{stage['measured_s']:.3f}",
             f"{stage['error']:+.0%}"] for entry in entries for stage in entry["stages"]]


def gain_rows(entries):
    rows = []
    for gain in (gain for entry in entries for gain in entry.get("gains", [])):
        low, high = gain["promised_interval_s"]
        rows.append([f"over {gain['over']}", f"{gain['promised_s']:.2f}", f"{low:.2f} to {high:.2f}",
                     with_half(gain["measured_s"], gain["half_width_s"]), ", ".join(f"{turn:.2f}" for turn in gain["turns_s"]),
                     "yes" if gain["inside"] else "no"])
    return rows


def aim(what, value, aim_value, shown="{:.1%}"):
    return [what, shown.format(value), "<= " + shown.format(aim_value), "reached" if value <= aim_value else "missed"]


def yes_or_no(what, good, shown=None):
    return [what, shown or ("yes" if good else "no"), "yes" if shown is None else "all", "reached" if good else "missed"]


def aim_rows(entries):
    rows = []
    montage, blast = ([e for e in entries if e["cell"]["application"] == name] for name in ("montage", "blast"))
    if montage:
        stages = [abs(stage["error"]) for entry in montage for stage in entry["stages"]]
        rows += [aim("montage, worst total", max(abs(e["error"]) for e in montage), TOTAL),
                 aim("montage, mean total", mean_of(abs(e["error"]) for e in montage), TOTAL),
                 yes_or_no(f"montage, stages within {STAGE:.0%}", max(stages) <= STAGE,
                           f"{sum(error <= STAGE for error in stages)} of {len(stages)}"),
                 aim("montage, bytes over all links", max(abs(e["network_error"]) for e in montage), BYTES)]
        of = {entry["cell"]["system"]: entry for entry in montage}
        if {"dss", "wass"} <= of.keys():
            faster = [of["wass"][key] < of["dss"][key] for key in ("predicted_s", "measured_s")]
            rows.append(yes_or_no("montage, which of dss and wass is faster", faster[0] == faster[1]))
    if blast:
        chosen, best = (min(blast, key=lambda entry: entry[key]) for key in ("predicted_s", "measured_s"))
        rows += [aim("blast, mean error", mean_of(abs(e["error"]) for e in blast), SWEEP),
                 yes_or_no("blast, the fastest is found", chosen is best),
                 aim("blast, the chosen one's regret", chosen["measured_s"] / best["measured_s"] - 1, REGRET)]
    gains = [gain for entry in entries for gain in entry.get("gains", [])]
    if gains:
        inside = sum(gain["inside"] for gain in gains)
        rows.append(yes_or_no("gains of the advice as promised", inside == len(gains), f"{inside} of {len(gains)}"))
    inside = sum(entry["inside"] for entry in entries)
    rows.append(["runs in their 90 % interval", f"{inside} of {len(entries)}", ">= 80 %",
                 "reached" if inside >= 0.8 * len(entries) else "missed"])
    for key, name in (("predict_cpu_s", "alone"), ("draw_cpu_s", "each further")):
        least = min(times(entry, key) for entry in entries)
        rows.append([f"a run's processor seconds, in predictions ({name}), least", f"{least:.0f}", f">= {TIMES}",
                     "reached" if least >= TIMES else "missed"])
    return rows


def show_all(entries, show):
    show(TITLES, [row_of(entry) for entry in entries])
    for titles, rows in ((STAGES, stage_rows([e for e in entries if e["cell"]["application"] == "montage"])),
                         (GAINS, gain_rows(entries)),
                         (CPU, [[*list(e["cell"].values())[:4], *cpu_row(e)] for e in entries]), (AIMS, aim_rows(entries))):
        if rows:
            show(titles, rows)


def parse(parser, **defaults):
    """What benchmarks of applications take, whose defaults may differ."""
    parser.add_argument("--bin", type=pathlib.Path, help="the directory of mosa and its daemons; --table needs none")
    parser.add_argument("--only", choices=("montage", "blast"))
    parser.add_argument("--tiles", type=int, default=100, help="of Montage")
    parser.add_argument("--queries", type=int, default=48, help="of BLAST")
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--platform", action="append", default=[], metavar="RATE=FILE", help="instead of `mosa identify`")
    parser.add_argument("-o", "--output", dest="out", type=pathlib.Path, default=pathlib.Path("accuracy-apps.out"), help="predictions and records")
    parser.add_argument("--cells", type=pathlib.Path, help="what was measured; default: OUT/cells.jsonl")
    parser.add_argument("--repeats", type=int, default=3, help="runs of a cell")
    parser.add_argument("--draws", type=int, default=40, help="predictions for the 90 %% interval")
    parser.add_argument("--ram", default="1G")
    parser.add_argument("--before", default="", help="words before each measuring command, to share a machine")
    parser.add_argument("--any-commit", action="store_true", help="keep cells that another commit measured")
    parser.add_argument("--table", action="store_true", help="only show what is kept, as Markdown")
    parser.set_defaults(**defaults)
    arguments = parser.parse_args()
    end_as_interrupted()
    if arguments.draws < DRAWS_MIN:
        parser.error(f"--draws {arguments.draws}: fewer than {DRAWS_MIN} have no 90 % interval")
    if not arguments.bin and not arguments.table:
        parser.error("--bin is missing: the programs that predict and are measured")
    arguments.bin, arguments.before = arguments.bin and arguments.bin.resolve(), arguments.before.split()
    arguments.platform = {rate: pathlib.Path(path) for rate, path in (word.split("=", 1) for word in arguments.platform)}
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


def carry_out(program, arguments, cells, measure, show):
    """`measure`: {application: function of a Bench and cells}. `show` is given what is kept, and what prints a table."""
    build = None if arguments.table else build_of(arguments.bin)
    kept = Kept(arguments.cells or arguments.out / "cells.jsonl", build, arguments.any_commit or arguments.table, Cell,
                lambda cell: settings_of(arguments, cell))
    failure = None
    if not arguments.table:
        reason = why_not()
        if reason:
            sys.exit(f"{program}: {reason}")
        try:
            measure_all(arguments, cells, kept, measure)
        except (*TROUBLE, KeyboardInterrupt) as error:
            failure = str(error) or "interrupted: the same command goes on"
    found = [kept.find(cell) for cell in cells if kept.find(cell)]
    entries, failed = [e for e in found if "failed" not in e], [e for e in found if "failed" in e]
    if entries:
        show(entries, (lambda *table: print(to_markdown(*table) + "\n")) if arguments.table else print_table)
    for entry in failed:
        print(f"failed: {' '.join(map(str, entry['cell'].values()))}: {entry['failed']}")
    print(f"{len(entries)} of {len(cells)} cells, commits {', '.join(sorted({e['commit'] for e in entries})) or '-'}"
          + (f"; {len(failed)} failed" if failed else ""))
    if failure or failed:
        sys.exit(f"{program}: {failure or f'{len(failed)} cells failed, as told above'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=4)
    arguments = parse(parser)
    carry_out("accuracy_apps.py", arguments, cells_of(arguments), {"montage": do_montage, "blast": do_by_store}, show_all)


if __name__ == "__main__":
    main()
