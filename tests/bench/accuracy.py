#!/usr/bin/env python3
"""How right the predictor is: every cell is predicted, written down, and only then run.

  tests/bench/accuracy.py --bin build/release/bin --subset quick
  tests/bench/accuracy.py --cells accuracy.jsonl --table --plot plots/

A cell is a pattern of the Opportunity Study (its Table 2 times a scale) on a system (dss, wass, or wass-N with N copies of what is
broadcast) of so many hosts with links of a rate; accuracy_cells.py says which. `mosa identify` measures the platform once per
rate or store, on three hosts, without any pattern; --platform KEY=FILE uses a file instead (KEY: the rate, none where links
have no limit, disk, gluster). `mosa predict` then writes each cell's prediction into --output before `mosa bench patterns` runs it on
the store (accuracy_stores.py), until the mean's 95 % interval is within 5 % or --repeats is reached: that cell is
*undecided*, counted and shown.

Cells are kept in --cells, a line of JSON each with the commit of the checkout that --bin lies in and a hash of its
programs; the same command goes on after Ctrl-C, in a cell after its last whole run. Cells of other programs, --ram or
--disk are measured again unless --any-commit, and so are those that have failed, from their first run: they are kept as
such, and the others go on. Errors are signed, (predicted - measured) /
measured. Links have no fixed names in that comparison: which node a file starts at is drawn for each file, so the i-th
busiest predicted link is compared with the i-th busiest measured one, sent and received apart; an error is a share of the
busiest link's bytes (or of what one task reads and writes, if that is more: links of a cell that moves nothing carry
heartbeats).

Energy: no emulated host has a wattmeter, so a synthetic one adds up power.json's figures over what was measured of the run:
its seconds for all hosts, the processor seconds of its tasks and of each host's daemons, and the bytes of each link. The
prediction is the energy of the simulated run, as long as the mean of its draws.
"""

import argparse
import contextlib
import json
import pathlib
import re
import resource
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from accuracy_cells import SUBSETS, Cell  # noqa: E402
from accuracy_plots import plot_all  # noqa: E402
from accuracy_report import SUMMARY, TITLES, mean_of, order_of, row_of, summary, to_markdown  # noqa: E402
from accuracy_stores import configuration_of, platform_key, settings_of, store_of  # noqa: E402
from cluster import check, print_table, why_not  # noqa: E402
from harness import TROUBLE, Kept, build_of, digest, end_as_interrupted, platform_of, run  # noqa: E402
from processors import CPU_TITLES, cpu_row, prediction_cpu_s  # noqa: E402

POWER = HERE / "power.json"
DRAWS_MIN = 19  # Fewer have no 90 % interval.
MADE_BYTES = 100_000_000  # To tell what making them costs.


def own_computing(mosa, scratch):
    """What the benchmark's own program computes, which is part of the workload as any program's computing is, measured
    apart from every store: processor seconds to start (of a task that does nothing), and for each GB that it writes. Who
    else works on the machine makes both longer, and nothing makes them shorter: the lower quartile counts."""
    target = scratch / "made"
    taken = {"nothing": [], "bytes": []}
    for _ in range(15):
        for what, step in (("nothing", f"make:{target}"), ("bytes", f"write:x:0:{MADE_BYTES}:/dev/null")):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run(mosa, "bench", "work", step)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken[what].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    target.rmdir()
    start_s, bytes_s = (sorted(taken[what])[len(taken[what]) // 4] for what in ("nothing", "bytes"))
    return start_s, max(0.0, bytes_s - start_s) / MADE_BYTES * 1e9


def by_load(links, names):
    """Bytes of links, sent and received apart, busiest first."""
    return [sorted((link[name] for link in links), reverse=True) for name in names]


def predicted_links(predicted):
    """The same of a prediction, in the mean of its draws, as runs' are: one cluster's are off by up to a sixth."""
    return predicted["links_mean"]["bytes_sent"] + predicted["links_mean"]["bytes_received"]


# ---- one cell

def predict(arguments, cell, platform, computing, stem):
    """What is in STEM.prediction.json, which is there before the first run that it predicts."""
    path = arguments.out / f"{stem}.prediction.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    pattern, copies = cell.pattern, cell.system.partition("-")[2]
    workload = f"synthetic:{pattern},{cell.size},scale={cell.scale},width={cell.hosts}"
    workload += ",compute={:.4f},make={:.3f}".format(*computing) + (f",copies={copies}" if copies else "")
    words = [arguments.bin / "mosa", "--json", "predict", "--platform", platform, "--workload", workload, "--config",
             configuration_of(arguments, cell), "--power", POWER]
    predicted = json.loads(run(*words, "--repeats", arguments.draws))
    check(not predicted["failure"], f"the prediction is that it fails: {predicted['failure']}")
    check(predicted["draws_failed"] == 0 and predicted["turnaround_interval_s"],
          f"in {predicted['draws_failed']} of {arguments.draws} draws it would fail: {predicted.get('draw_failure')}")
    used = prediction_cpu_s(lambda repeats: run(*words, "--repeats", repeats), arguments.draws)
    facts = {"file": path.name, "compute_s": computing[0], "make_s_per_gb": computing[1], **used, "prediction": predicted}
    path.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def measure(arguments, cell, store, stem):
    """Goes on with the runs that STEM.runs.json has."""
    path = arguments.out / f"{stem}.runs.json"
    if path.exists():  # Of a cluster that was the same but for its name, which is in the paths of mounts.
        path.write_text(re.sub(r"\bt\d+-\d+/", f"{store.name}/", path.read_text(encoding="utf-8")), encoding="utf-8")
    run(*arguments.before, arguments.bin / "mosa", "bench", "patterns", *store.bench_words(cell.system),
        "--patterns", cell.pattern, "--sizes", cell.size, "--scale", cell.scale, "--slots", 1,
        "--repeats", f"{arguments.repeats[0]}..{arguments.repeats[1]}", "--output", path)
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    check(len(found) == 1, f"{path} has {len(found)} cells, not one")
    return found[0]


def processor_seconds(each):
    """Of one run: its tasks' and its daemons'."""
    return (sum(stage["cpu_seconds"] for stage in each["tasks_by_stage"] if stage["phase"] == "stages"),
            sum(each["stages"]["daemon_seconds"].values()))


def compare(cell, predicted, measured, platform):
    notice_s = platform["runner"]["notice_ns"] / 1e9
    link_bytes_per_second = min(platform["host"][f"{way}_bytes_per_second"] for way in ("in", "out"))
    begins, ends = ({s["name"]: s[key] for s in predicted["stages"]} for key in ("start_s", "end_s"))
    # `mosa bench` measures from the first start to the last end that it notices, `mosa predict` to the runner's own end.
    shift = max(ends.values()) - min(begins.values()) + notice_s - predicted["turnaround_s"]
    total = predicted["turnaround_mean_s"] + shift
    low, high = predicted["turnaround_interval_s"]
    means = {s["name"]: s["mean_s"] for s in predicted["stages"]}
    seconds = measured["seconds"]["stages"]
    runs = [each["stages"] for each in measured["runs"]]
    stages = []
    for number, name in enumerate(ends):
        of_runs = [[s for s in each["tasks_by_stage"] if s["phase"] == "stages"][number] for each in measured["runs"]]
        check(all(s["stage"] == name for s in of_runs), f"{cell}: stages in another order: {of_runs}")
        stages.append({"stage": name, "predicted_s": means[name] + notice_s,
                       "measured_s": mean_of(s["seconds"] for s in of_runs)})
        moved = mean_of((s["read_bytes"] + s["written_bytes"]) / s["tasks"] for s in of_runs)
        stages[-1]["task_bytes"] = moved
    facts = compare_links(cell, predicted, runs, max(stage["task_bytes"] for stage in stages))
    # `mosa bench` does not know other stores' daemons.
    if cell.store != "gluster" and all("daemon_seconds" in each for each in runs):
        facts["run_cpu_s"] = mean_of(sum(processor_seconds(each)) for each in measured["runs"])
        facts |= compare_energy(predicted, measured, total, link_bytes_per_second)
    return {
        "link_busy": max(facts["links"]["measured"]) / link_bytes_per_second / seconds["mean"],
        "predicted_s": total, "predicted_interval_s": [low + shift, high + shift],
        "measured_s": seconds["mean"], "half_width_s": seconds["half_width"], "runs": seconds["count"],
        "settled": measured["settled"], "error": total / seconds["mean"] - 1,
        "inside": low + shift <= seconds["mean"] <= high + shift,
        "stages": [{**s, "error": s["predicted_s"] / s["measured_s"] - 1} for s in stages], **facts,
    }


def compare_links(cell, predicted, runs, task_bytes):
    hosts = {f"h{n + 1}" for n in range(cell.hosts)}
    loads = [by_load([link for host, link in each["links"].items() if host in hosts],
                     ("sent_bytes", "received_bytes")) for each in runs]
    links = {"predicted": predicted_links(predicted),
             "measured": [mean_of(values) for values in zip(*(one + other for one, other in loads))]}
    whole = max(*links["measured"], task_bytes)
    off = [(p - m) / whole for p, m in zip(links["predicted"], links["measured"])]
    return {"links": links, "links_error": max(off, key=abs),
            "network_bytes": {key: sum(values) / 2 for key, values in links.items()},
            "network_error": sum(off) / max(1, sum(links["measured"]) / whole)}


def compare_energy(predicted, measured, predicted_s, link_bytes_per_second):
    """What a wattmeter would say, beside what is predicted of a run as long as the mean of its draws."""
    power = json.loads(POWER.read_text(encoding="utf-8"))["levels"][0]
    hosts, cores = len(predicted["hosts"]), predicted["hosts"][0]["cores"]
    idle, busy = [], []
    for each in measured["runs"]:
        stages = each["stages"]
        tasks_s, daemons_s = processor_seconds(each)
        link_bytes = sum(link["sent_bytes"] + link["received_bytes"] for link in stages["links"].values())
        idle.append(power["idle_w"] * hosts * stages["seconds"])
        busy.append(power["application_w"] * tasks_s / cores
                    + power["storage_w"] * daemons_s / cores
                    + power["network_w"] * link_bytes / link_bytes_per_second / 2)
    above_idle = predicted["energy_j"] - power["idle_w"] * hosts * predicted["turnaround_s"]
    joules = {"predicted": power["idle_w"] * hosts * predicted_s + above_idle, "measured": mean_of(idle) + mean_of(busy)}
    return {"joules": joules, "energy_error": joules["predicted"] / joules["measured"] - 1,
            "joules_above_idle": {"predicted": above_idle, "measured": mean_of(busy)}}


# ---- all cells

def measure_all(arguments, cells, kept):
    missing = [cell for cell in cells if kept.is_missing(cell)]
    programs = kept.build["programs"]
    done = 0
    for hosts, rate, place in sorted({(cell.hosts, cell.rate, cell.store) for cell in missing}):
        left = [cell for cell in missing if (cell.hosts, cell.rate, cell.store) == (hosts, rate, place)]
        three = left[0]._replace(hosts=3)
        platform = platform_of(arguments, platform_key(three), programs, settings_of(arguments, three),
                               lambda cell=three: store_of(arguments, cell))
        figures = platform.read_bytes()
        computing = own_computing(arguments.bin / "mosa", arguments.out)
        with contextlib.ExitStack() as clusters:
            store = None
            for cell in left:
                done += 1
                shown = f"{done}/{len(missing)} {' '.join(map(str, cell))}"
                made_with = [programs, settings_of(arguments, cell), digest(figures), arguments.repeats, arguments.draws]
                stem = f"{'-'.join(map(str, cell))}.{digest(made_with)}"
                try:
                    facts = predict(arguments, cell, platform, computing, stem)
                    store = store or clusters.enter_context(store_of(arguments, cell))
                    measured = measure(arguments, cell, store, stem)
                    predicted = facts.pop("prediction")
                    facts |= compare(cell, predicted, measured, json.loads(figures))
                except TROUBLE as error:
                    kept.add(cell, {"failed": str(error)})
                    print(f"{shown}: failed: {error}", file=sys.stderr, flush=True)
                    for path in arguments.out.glob(f"{stem}.*"):  # It begins anew.
                        path.unlink()
                    clusters.close()  # What it has left behind disturbs no other cell.
                    store = None
                    continue
                kept.add(cell, {**facts, "platform": digest(figures)})
                print(f"{shown}: predicted {facts['predicted_s']:.3f} s, measured {facts['measured_s']:.3f} s "
                      f"({facts['error']:+.1%})", file=sys.stderr, flush=True)


def repeats(text):
    least, _, most = text.partition("..")
    return int(least), int(most or least)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, help="the directory of mosa and its daemons; --table needs none")
    parser.add_argument("--subset", choices=list(SUBSETS), default="all", help="of cells: accuracy_cells.py")
    parser.add_argument("--only", action="append", default=[], metavar="NAME=VALUE",
                        help="cells of this pattern, size, system, hosts or rate alone; the summary says so")
    parser.add_argument("--platform", action="append", default=[], metavar="KEY=FILE", help="instead of `mosa identify`")
    parser.add_argument("-o", "--output", dest="out", type=pathlib.Path, default=pathlib.Path("accuracy.out"), help="predictions and runs")
    parser.add_argument("--cells", type=pathlib.Path, help="what was measured; default: OUT/cells.jsonl")
    parser.add_argument("--repeats", type=repeats, help="MIN..MAX runs of a cell; default: the subset's, 3..20 of all")
    parser.add_argument("--draws", type=int, default=40, help="predictions for the 90 %% interval")
    parser.add_argument("--ram", help="of each node; default: as much as is here (accuracy_cells.py)")
    parser.add_argument("--disk", type=pathlib.Path, default=pathlib.Path("/var/tmp"), help="for the cells of store disk")
    parser.add_argument("--before", default="", help="words before each measuring command, to share a machine")
    parser.add_argument("--any-commit", action="store_true", help="keep cells that another commit measured")
    parser.add_argument("--table", action="store_true", help="only show what is kept, as Markdown")
    parser.add_argument("--plot", type=pathlib.Path, metavar="DIR", help="draw what is shown: measured beside predicted")
    arguments = parser.parse_args()
    end_as_interrupted()
    if arguments.draws < DRAWS_MIN:
        parser.error(f"--draws {arguments.draws}: fewer than {DRAWS_MIN} have no 90 % interval")
    if not arguments.bin and not arguments.table:
        parser.error("--bin is missing: the programs that predict and are measured")
    build = None if arguments.table else build_of(arguments.bin.resolve())
    arguments.bin, arguments.before = arguments.bin and arguments.bin.resolve(), arguments.before.split()
    arguments.platform = {rate: pathlib.Path(path) for rate, path in (word.split("=", 1) for word in arguments.platform)}
    arguments.repeats = arguments.repeats or SUBSETS[arguments.subset].repeats
    arguments.out.mkdir(parents=True, exist_ok=True)
    cells = list(SUBSETS[arguments.subset].cells())
    for word in arguments.only:
        name, _, value = word.partition("=")
        cells = [cell for cell in cells if str(getattr(cell, name)) == value]
    kept = Kept(arguments.cells or arguments.out / "cells.jsonl", build, arguments.any_commit or arguments.table, Cell,
                lambda cell: settings_of(arguments, cell))
    failure = None
    if not arguments.table:
        reason = why_not()
        if reason:
            sys.exit(f"accuracy.py: {reason}")
        try:
            measure_all(arguments, cells, kept)
        except (*TROUBLE, KeyboardInterrupt) as error:
            failure = str(error) or "interrupted: the same command goes on"
    found = [kept.find(cell) for cell in cells if kept.find(cell)]
    entries = [entry for entry in found if "failed" not in entry]
    failed = [entry for entry in found if "failed" in entry]
    show = (lambda *table: print(to_markdown(*table) + "\n")) if arguments.table else print_table
    if entries:
        show(TITLES, [row_of(entry) for entry in entries])
        show(SUMMARY, summary(entries))
        print(order_of(entries))
        if timed := [entry for entry in entries if "run_cpu_s" in entry]:
            show([*TITLES[:5], *CPU_TITLES], [[*row_of(entry)[:5], *cpu_row(entry)] for entry in timed])
    for path in plot_all(entries, arguments.plot) if arguments.plot else []:
        print(path, file=sys.stderr)
    for entry in failed:
        print(f"failed: {' '.join(map(str, entry['cell'].values()))}: {entry['failed']}")
    missing = len(cells) - len(found)
    print(f"{len(entries)} of {len(cells)} cells, commits {', '.join(sorted({e['commit'] for e in entries})) or '-'}"
          + (f"; {len(failed)} failed" if failed else "") + (f"; {missing} not measured yet" if missing else "")
          + (f"; only {arguments.only}" if arguments.only else ""))
    if failure or failed:
        sys.exit(f"accuracy.py: {failure or f'{len(failed)} cells failed, as told above'}")


if __name__ == "__main__":
    main()
