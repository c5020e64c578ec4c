#!/usr/bin/env python3
"""How right the predictor is: every cell is predicted, written down, and only then run.

  tests/bench/accuracy.py --bin build/release/bin --subset quick
  tests/bench/accuracy.py --cells accuracy.jsonl --table --plot plots/

A cell is a pattern of paper 002 (its Table 2 times a scale) on a system (dss, wass, or wass-N with N copies of what is
broadcast) of so many hosts with links of a rate. `mosa identify` measures the platform once per rate, on three hosts,
without any pattern; --platform RATE=FILE uses a file instead. `mosa predict` then writes each cell's prediction into
--out before `mosa bench patterns` runs it on a cluster of namespaces, until the mean's 95 % interval is within 5 % or
--repeats is reached: that cell is *undecided*, counted and shown.

Cells are kept in --cells, a line of JSON each with the commit of the checkout that --bin lies in and a hash of its
programs; the same command goes on after Ctrl-C. Cells of other programs are measured again unless --any-commit, and so
are those that have failed: they are kept as such, and the others go on. Errors are signed, (predicted - measured) /
measured. Links have no fixed names in that comparison: which node a file starts at is drawn for each file, so the i-th
busiest predicted link is compared with the i-th busiest measured one, sent and received apart; an error is a share of the
busiest link's bytes (or of what one task reads and writes, if that is more: links of a cell that moves nothing carry
heartbeats).
"""

import argparse
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from accuracy_plots import plot_all  # noqa: E402
from cluster import Cluster, Failed, check, print_table, why_not  # noqa: E402
from processors import CPU_TITLES, children_cpu_s, cpu_row, prediction_cpu_s  # noqa: E402

Cell = collections.namedtuple("Cell", "pattern size scale system hosts rate")
PATTERNS = ("pipeline", "reduce", "broadcast", "scatter", "gather")
SCALES = {"small": 1, "medium": 0.1, "large": 0.02}
# Two cores carry all links of an emulated cluster: slow ones, so that they and not the cores are the limit.
RATES = {4: "100mbit", 8: "100mbit", 19: "100mbit"}
MOST, LINKS = 0.08, 0.02
DRAWS_MIN = 19  # Fewer have no 90 % interval.
LINK_LIMITED = 0.5  # The busiest link is busy for more than this share of the run.


def cells_of(patterns, sizes, hosts):
    for count in hosts:
        for size in sizes:
            for pattern in patterns:
                copies = sorted({n for n in (1, 2, 4, 8, count) if n <= count}) if pattern == "broadcast" else [0]
                systems = ["dss", *(f"wass-{n}" if n else "wass" for n in copies)]
                for system in systems:
                    yield Cell(pattern, size, SCALES[size], system, count, RATES[count])


def subset(name):
    if name == "all":
        return list(cells_of(PATTERNS, ("small", "medium", "large"), (4, 8, 19)))
    quick = cells_of(PATTERNS, ("medium",), (4,))
    return [cell for cell in quick if cell.system in ("dss", "wass", "wass-1", "wass-4")]


def run(*command, limit_s=580):
    """What it prints. It has a session of its own: when its time is over, what it has started ends with it."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as child:
        try:
            out, errors = child.communicate(timeout=limit_s)
        except BaseException:  # Ctrl-C too: it does not reach another session.
            end_group(child)
            raise
    check(child.returncode == 0, f"{' '.join(map(str, command))}: {errors.strip()[-1500:]}")
    return out


def end_group(child):
    """Asks first, so that programs remove what they have made."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=20)  # To the end of all that write to it.


def build_of(binaries):
    """The commit of the checkout that the programs were built in, as it is now, and a hash of the programs themselves."""
    def git(*words):
        return subprocess.run(["git", "-C", binaries, *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    programs = hashlib.sha256()
    for name in ("mosa", "mosa-manager", "mosa-storage", "mosa-mount"):
        programs.update((binaries / name).read_bytes())
    return {"commit": (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else ""),
            "programs": programs.hexdigest()[:12]}


def own_seconds(mosa, scratch):
    """Processor seconds of a task that does nothing: what the benchmark's own program takes to start. It is part of the
    workload, as any program's computing is, and measured apart from every store."""
    target = scratch / "made"
    taken = []
    for _ in range(15):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(mosa, "bench", "work", f"make:{target}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    target.rmdir()
    return sorted(taken)[len(taken) // 2]


def mean_of(values):
    values = list(values)
    return sum(values) / len(values)


def by_load(links, names):
    """Bytes of links, sent and received apart, busiest first."""
    return [sorted((link[name] for link in links), reverse=True) for name in names]


# ---- one cell

def predict(arguments, cell, platform, compute_s):
    pattern, copies = cell.pattern, cell.system.partition("-")[2]
    workload = f"synthetic:{pattern},{cell.size},scale={cell.scale},width={cell.hosts}"
    workload += f",compute={compute_s:.4f}" + (f",copies={copies}" if copies else "")
    config = f"hosts={cell.hosts},manager=apart,slots=1,system={cell.system.partition('-')[0]}"
    path = arguments.out / f"{'-'.join(map(str, cell))}.prediction.json"
    words = [arguments.bin / "mosa", "--json", "predict", "--platform", platform, "--workload", workload, "--config", config]
    text = run(*words, "--repeats", arguments.draws)
    path.write_text(text, encoding="utf-8")
    predicted = json.loads(text)
    check(not predicted["failure"], f"the prediction is that it fails: {predicted['failure']}")
    check(predicted["draws_failed"] == 0 and predicted["turnaround_interval_s"],
          f"in {predicted['draws_failed']} of {arguments.draws} draws it would fail: {predicted.get('draw_failure')}")
    used = prediction_cpu_s(lambda repeats: run(*words, "--repeats", repeats), arguments.draws)
    return predicted, {"prediction": path.name, **used}


def measure(arguments, cell, store, attempt):
    path = arguments.out / f"{'-'.join(map(str, cell))}.{attempt}.runs.json"
    path.unlink(missing_ok=True)
    system, _, copies = cell.system.partition("-")
    cpu_s = store.cpu_seconds() + children_cpu_s()
    run(*arguments.before, arguments.bin / "mosa", "bench", "patterns", "--cluster", store.name, "--dir", store.directory,
        "--patterns", cell.pattern, "--sizes", cell.size, "--scale", cell.scale, "--systems", system, "--slots", 1,
        "--repeats", f"{arguments.repeats[0]}..{arguments.repeats[1]}", "--out", path,
        *(["--replicas", copies] if copies else []))
    found = [each for each in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    check(len(found) == 1, f"{path} has {len(found)} cells, not one")
    return {**found[0], "cpu_s": store.cpu_seconds() + children_cpu_s() - cpu_s}


def compare(cell, predicted, measured, notice_s, link_bytes_per_second):
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
    hosts = {f"h{n + 1}" for n in range(cell.hosts)}
    sent, received = by_load([h for h in predicted["hosts"] if h["name"] in hosts], ("bytes_sent", "bytes_received"))
    loads = [by_load([link for host, link in each["links"].items() if host in hosts],
                     ("sent_bytes", "received_bytes")) for each in runs]
    links = {"predicted": sent + received,
             "measured": [mean_of(values) for values in zip(*(one + other for one, other in loads))]}
    whole = max(*links["measured"], *(stage["task_bytes"] for stage in stages))
    off = [(p - m) / whole for p, m in zip(links["predicted"], links["measured"])]
    busiest = max(links["measured"])
    return {
        "link_busy": busiest / link_bytes_per_second / seconds["mean"],
        "predicted_s": total, "predicted_interval_s": [low + shift, high + shift],
        "measured_s": seconds["mean"], "half_width_s": seconds["half_width"], "runs": seconds["count"],
        "run_cpu_s": measured["cpu_s"] / seconds["count"], "settled": measured["settled"], "error": total / seconds["mean"] - 1,
        "inside": low + shift <= seconds["mean"] <= high + shift,
        "stages": [{**s, "error": s["predicted_s"] / s["measured_s"] - 1} for s in stages],
        "network_bytes": {key: sum(values) / 2 for key, values in links.items()},
        "links": links, "links_error": max(off, key=abs), "network_error": sum(off) / max(1, sum(links["measured"]) / whole),
    }


# ---- all cells

class Kept:
    """Cells that were measured, one line of JSON each; later lines are newer."""

    def __init__(self, path, build, any_commit, cell_type=Cell):
        self.path, self.build, self.any_commit, self.cells = path, build, any_commit, {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            with contextlib.suppress(json.JSONDecodeError):  # A line that was cut short was not measured.
                entry = json.loads(line)
                self.cells[cell_type(**entry["cell"])] = entry

    def find(self, cell):
        entry = self.cells.get(cell)
        return entry if entry and (self.any_commit or entry.get("programs") == self.build["programs"]) else None

    def add(self, cell, facts):
        entry = {"cell": cell._asdict(), **self.build, "when": time.strftime("%F %TZ", time.gmtime()), **facts}
        self.cells[cell] = entry
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def platform_of(arguments, rate, programs):
    """Measured before any pattern runs, on three hosts, with these programs."""
    if rate in arguments.platform:
        return arguments.platform[rate]
    path = arguments.out / f"platform-{rate}-{programs}.json"
    if not path.exists():
        with Cluster(arguments.bin, 3, rate=rate) as store:
            run(*arguments.before, arguments.bin / "mosa", "identify", "--cluster", store.name, "--dir", store.directory,
                "-o", path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
    return path


def measure_all(arguments, cells, kept):
    missing = [cell for cell in cells if (kept.find(cell) or {"failed": "not measured"}).get("failed")]
    done = 0
    for hosts, rate in sorted({(cell.hosts, cell.rate) for cell in missing}):
        platform = platform_of(arguments, rate, kept.build["programs"])
        text = platform.read_text(encoding="utf-8")
        notice_s = json.loads(text)["runner"]["notice_ns"] / 1e9
        link = min(json.loads(text)["host"][f"{way}_bytes_per_second"] for way in ("in", "out"))
        compute_s = own_seconds(arguments.bin / "mosa", arguments.out)
        left = [cell for cell in missing if (cell.hosts, cell.rate) == (hosts, rate)]
        with contextlib.ExitStack() as clusters:
            store = None
            for cell in left:
                done += 1
                shown = f"{done}/{len(missing)} {' '.join(map(str, cell))}"
                try:
                    predicted, facts = predict(arguments, cell, platform, compute_s)
                    store = store or clusters.enter_context(Cluster(arguments.bin, hosts, rate=rate, ram=arguments.ram))
                    measured = measure(arguments, cell, store, os.getpid())
                    facts |= compare(cell, predicted, measured, notice_s, link)
                except (Failed, subprocess.TimeoutExpired) as error:
                    kept.add(cell, {"failed": str(error)})
                    print(f"{shown}: failed: {error}", file=sys.stderr, flush=True)
                    # What it has left behind disturbs no other cell.
                    clusters.close()
                    store = None
                    continue
                kept.add(cell, {"compute_s": compute_s, "platform": hashlib.sha256(text.encode()).hexdigest()[:12],
                                **facts})
                print(f"{shown}: predicted {facts['predicted_s']:.3f} s, measured {facts['measured_s']:.3f} s "
                      f"({facts['error']:+.1%}), links {facts['links_error']:+.1%}", file=sys.stderr, flush=True)


def row_of(entry):
    cell = Cell(**entry["cell"])
    half = entry["half_width_s"]
    stages = ", ".join(f"{s['stage']} {s['error']:+.0%}" for s in entry["stages"])
    return [cell.pattern, f"{cell.size} x{cell.scale:g}", cell.system, cell.hosts, cell.rate,
            f"{entry['predicted_s']:.3f}", f"{entry['measured_s']:.3f} ±{half if half is None else format(half, '.3f')}",
            f"{entry['runs']}{'' if entry['settled'] else '?'}", f"{entry['error']:+.1%}",
            "yes" if entry["inside"] else "no", f"{entry['link_busy']:.0%}", stages,
            " / ".join(f"{entry['network_bytes'][k] / 1e6:.1f}" for k in ("predicted", "measured")),
            f"{entry['network_error']:+.1%}", f"{entry['links_error']:+.1%}"]


TITLES = ["PATTERN", "SIZE", "SYSTEM", "HOSTS", "RATE", "PREDICTED S", "MEASURED S", "RUNS", "ERROR", "IN 90 %", "LINK BUSY", "STAGES",
          "MB MOVED P/M", "BYTES", "WORST LINK"]


def summary(entries):
    lines = []
    limited = [e for e in entries if e["link_busy"] >= LINK_LIMITED]
    groups = [("all", entries), ("links are the limit", limited), ("others", [e for e in entries if e not in limited])]
    for key in ("size", "hosts", "pattern", "system"):
        for value in sorted({e["cell"][key] for e in entries}, key=str):
            groups.append((f"{key} {value}", [e for e in entries if e["cell"][key] == value]))
    for name, group in (each for each in groups if each[1]):
        errors = sorted(abs(e["error"]) for e in group)
        links = sorted(abs(e["links_error"]) for e in group)
        network = [abs(e["network_error"]) for e in group]
        lines.append([name, len(group), f"{mean_of(errors):.1%}", f"{mean_of(e['error'] for e in group):+.1%}",
                      f"{mean_of(e <= MOST for e in errors):.0%}", f"{errors[-1]:.1%}",
                      f"{mean_of(e['inside'] for e in group):.0%}", f"{mean_of(e <= LINKS for e in network):.0%}",
                      f"{mean_of(e <= LINKS for e in links):.0%}",
                      f"{links[-1]:.1%}", sum(not e["settled"] for e in group)])
    return lines


SUMMARY = ["CELLS", "COUNT", "MEAN |ERROR|", "BIAS", "<= 8 %", "WORST", "IN 90 %", "BYTES <= 2 %", "LINKS <= 2 %",
           "WORST LINK", "UNDECIDED"]


def to_markdown(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def repeats(text):
    least, _, most = text.partition("..")
    return int(least), int(most or least)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, help="the directory of mosa and its daemons; --table needs none")
    parser.add_argument("--subset", choices=("quick", "all"), default="all")
    parser.add_argument("--only", action="append", default=[], metavar="NAME=VALUE",
                        help="cells of this pattern, size, system, hosts or rate alone; the summary says so")
    parser.add_argument("--platform", action="append", default=[], metavar="RATE=FILE", help="instead of `mosa identify`")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("accuracy.out"), help="predictions and runs")
    parser.add_argument("--cells", type=pathlib.Path, help="what was measured; default: OUT/cells.jsonl")
    parser.add_argument("--repeats", type=repeats, help="MIN..MAX runs of a cell; default 3..20, quick 3..5")
    parser.add_argument("--draws", type=int, default=40, help="predictions for the 90 %% interval")
    parser.add_argument("--ram", default="1G")
    parser.add_argument("--before", default="", help="words before each measuring command, to share a machine")
    parser.add_argument("--any-commit", action="store_true", help="keep cells that another commit measured")
    parser.add_argument("--table", action="store_true", help="only show what is kept, as Markdown")
    parser.add_argument("--plot", type=pathlib.Path, metavar="DIR", help="draw what is shown: measured beside predicted")
    arguments = parser.parse_args()
    if arguments.draws < DRAWS_MIN:
        parser.error(f"--draws {arguments.draws}: fewer than {DRAWS_MIN} have no 90 % interval")
    if not arguments.bin and not arguments.table:
        parser.error("--bin is missing: the programs that predict and are measured")
    build = None if arguments.table else build_of(arguments.bin.resolve())
    arguments.bin, arguments.before = arguments.bin and arguments.bin.resolve(), arguments.before.split()
    arguments.platform = {rate: pathlib.Path(path) for rate, path in (word.split("=", 1) for word in arguments.platform)}
    arguments.repeats = arguments.repeats or ((3, 5) if arguments.subset == "quick" else (3, 20))
    arguments.out.mkdir(parents=True, exist_ok=True)
    cells = subset(arguments.subset)
    for word in arguments.only:
        name, _, value = word.partition("=")
        cells = [cell for cell in cells if str(getattr(cell, name)) == value]
    kept = Kept(arguments.cells or arguments.out / "cells.jsonl", build, arguments.any_commit or arguments.table)
    failure = None
    if not arguments.table:
        reason = why_not()
        if reason:
            sys.exit(f"accuracy.py: {reason}")
        try:
            measure_all(arguments, cells, kept)
        except (Failed, KeyboardInterrupt) as error:
            failure = str(error) or "interrupted: the same command goes on"
    found = [kept.find(cell) for cell in cells if kept.find(cell)]
    entries = [entry for entry in found if "failed" not in entry]
    failed = [entry for entry in found if "failed" in entry]
    show = (lambda *table: print(to_markdown(*table) + "\n")) if arguments.table else print_table
    if entries:
        show(TITLES, [row_of(entry) for entry in entries])
        show(SUMMARY, summary(entries))
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
