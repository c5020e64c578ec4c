#!/usr/bin/env python3
"""What `mosa compare` finds: runs of a workflow on a cluster with one thing wrong, and on a cluster with nothing wrong.

  tests/bench/faults.py --bin build/release/bin                        # every fault of fault_library.py, 5 trials each
  tests/bench/faults.py --bin build/release/bin --fault slow-link --trials 1
  tests/bench/faults.py --bin build/release/bin --clean 100            # and how often something is found that is not there
  tests/bench/faults.py --cells faults.out/trials.jsonl --table

`mosa identify` measures the platform on the sound cluster, before any workflow has run; --platform FILE is one of before.
Each trial makes two sound runs, then three with the fault, and asks `mosa compare` of all so far after the first, the second
and the third of these, as somebody who watches would. *After runs* is how many with the fault it takes until it first says that
there is an anomaly; *culprit first* whether the largest one blames what was wrong before anything else. What a fault costs is its
runs' median over the mean of sound runs on the same cluster, made before and after. A run that fails under its fault is a trial
that failed, and is shown; what comes after it has a new cluster. Of clean runs three are judged together, and each is of one such
window. With each run is kept what others had of the machine's processors: a window is *busy* if that was a tenth or more in one
of its runs.

Trials are kept in --cells, a line of JSON each with the hash of the programs, whose trials alone are counted unless
--any-commit; the same command goes on after Ctrl-C. Shown is every size of a fault that these programs were tried at, also
those that the library has no more. --again makes no run: it
compares the records of kept trials once more with this `mosa`, as trials of these programs; whose daemons must be those of the runs.
Needs root (namespaces), nft, ss and cc, for stolen-cpu cgroup v1, and for the manager's faults the target mosa-manager-faulty beside
the other programs.
"""

import argparse
import collections
import contextlib
import itertools
import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from accuracy_report import to_markdown  # noqa: E402
from cluster import Cluster, check, print_table, why_not  # noqa: E402
from fault_library import CPU_GROUPS, LIBRARY, one_seed, wide_lock  # noqa: E402
from harness import TROUBLE, Kept, build_of, end_as_interrupted, run  # noqa: E402

Cell = collections.namedtuple("Cell", "fault size")
CLEAN = Cell("none", None)
Run = collections.namedtuple("Run", "record seconds others_share")
HOSTS = 4
RATE_MBIT = 100
SICK = ("h2", "h3", "h4", "h1")  # The host that has the fault, from trial to trial.
SOUND_RUNS = 2
RUNS = 3
ANOMALY = 7
BUSY_SHARE = 0.1
CONFIG = f"hosts={HOSTS},slots=1,manager=apart,system=dss"


# ---- the workflow: ordinary programs that compute and hand each other files

COMPUTE = "awk 'BEGIN{for(i=0;i<%d;i++)x+=i}'"
LOOPS = 6_000_000
SHARED = "made.0"  # All tasks of later stages read it: each host once, and then its page cache has it.


def task(name, inputs, outputs, loops):
    """Reads its inputs, computes, writes its outputs."""
    words = [f"cat {' '.join(inputs)} > /dev/null"] if inputs else []
    words.append(COMPUTE % loops)
    words += [f"head -c {size} /dev/zero > {path}" for path, size in outputs.items()]
    return {"id": name, "command": " && ".join(words), "inputs": list(inputs), "outputs": list(outputs), "loops": loops}


def workflow(pieces):
    tasks, files = [], {}

    def parts(path):
        return [path] if pieces == 1 else [f"{path}.{piece}" for piece in range(pieces)]

    def add(name, inputs, outputs, loops):
        written = {part: size // pieces for path, size in outputs.items() for part in parts(path)}
        tasks.append(task(name, [part for path in inputs for part in parts(path)], written, loops))
        files.update({path: {"size": size} for path, size in written.items()})

    for i in range(8):
        add(f"make_{i}", [], {f"made.{i}": 12_000_000 if f"made.{i}" == SHARED else 6_000_000}, LOOPS)
    for i in range(8):
        add(f"turn_{i}", sorted({SHARED, f"made.{i}"}), {f"turned.{i}": 4_000_000}, LOOPS)
    for i in range(4):
        add(f"sum_{i}", [SHARED, f"turned.{i}", f"turned.{i + 4}"], {f"sum.{i}": 1_000_000}, 2 * LOOPS)
    return {"name": "faults", "tasks": tasks, "files": files}


def with_runtimes(form, scratch):
    """Each task has the processor seconds that it takes with its files on a local disk: the median of five."""
    known = {}
    for each in form["tasks"]:
        kind = each["id"].partition("_")[0]
        if kind not in known:
            for path in each["inputs"]:
                (scratch / path).write_bytes(bytes(form["files"][path]["size"]))
            taken = []
            for _ in range(5):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(["bash", "-c", "set -euo pipefail; " + each["command"]], cwd=scratch, check=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            known[kind] = statistics.median(taken)
        each["runtime"] = known[kind]
        del each["loops"]
    return form


# ---- runs

def others_share(record):
    """On the machine where it is largest; of a record that does not say it None."""
    shares = [machine["others_s"] / machine["seconds"] / machine["processors"] for machine in record.get("machines") or [] if "others_s" in machine]
    return round(max(shares), 4) if shares else None


class Bench:
    """A cluster that is up, the platform that was measured on it, and the workflow."""

    def __init__(self, arguments, store, number):
        self.arguments, self.store = arguments, store
        self.directory = arguments.out / f"bench-{number}"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        store.rate_mbit, store.node_port, store.scratch = RATE_MBIT, 7401, self.directory
        self.numbers = itertools.count()

    def form(self, pieces):
        path = self.directory / f"workflow-{pieces}.json"
        if not path.exists():
            local = self.directory / f"local-{pieces}"
            local.mkdir()
            path.write_text(json.dumps(with_runtimes(workflow(pieces), local)), encoding="utf-8")
        return path

    def run(self, pieces=1):
        """One run: its record, seconds, and what others had of the machine's processors, None if it is not known."""
        name = f"r{next(self.numbers)}"
        record = self.directory / f"{name}.json"
        run(*self.arguments.before, self.arguments.bin / "mosa", "run", self.form(pieces), "--cluster", self.store.name, "--dir", self.store.directory,
            "--system", "dss", "--slots", 1, "--workdir", name, "--record", record, limit_s=300)
        shutil.rmtree(pathlib.Path(self.store.mount("h1")) / name)
        said = json.loads(record.read_text(encoding="utf-8"))
        return Run(str(record), said["turnaround_seconds"], others_share(said))


def compare(arguments, records):
    command = [arguments.bin / "mosa", "--json", "compare", "--platform", arguments.platform, "--config", CONFIG]
    for record in records:
        command += ["--run", record]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode in (0, ANOMALY), f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def rank_of(culprits, sick, blamed):
    """Where what is wrong stands among what is blamed: 1 is first; None: nowhere."""
    for number, each in enumerate(blamed, start=1):
        if each["part"] in culprits and each["host"] in (sick, None):
            return number
    return None


def judge(answer, culprits=(), sick=None):
    """What is said first: of the largest anomaly, or if only requests are off, of these."""
    off = [each for each in answer["requests"] if each["verdict"] == "anomaly"]
    if not answer["anomalies"] and not off:
        return {"found": False, **({"said": answer["machine_busy"]} if answer["machine_busy"] else {})}
    first = (answer["anomalies"] or [{**off[0], "cause": "", "blamed": answer["blamed"]}])[0]
    said = f"{first['sentence']} {first['cause']} Open first: {first['open_first']}"
    if isinstance(culprits, str):
        rank = 1 if any(culprits in text for text in (first["cause"], *answer["notes"])) else None
    else:
        rank = rank_of(culprits, sick, first["blamed"])
    named = first["blamed"][0] if first["blamed"] else {"part": "nothing", "host": None}
    return {"found": True, "rank": rank, "named": " ".join(filter(None, (named["part"], named["host"]))), "said": said}


def judge_all(arguments, before, records, fault, sick):
    """After the first run with the fault, the second, and so on, beside those of before."""
    return [judge(compare(arguments, before + records[:count]), fault.culprits, sick) for count in range(1, len(records) + 1)]


def trial(bench, fault, size, sick):
    bench.store.sick = sick
    before = [bench.run(fault.pieces) for _ in range(SOUND_RUNS)]
    with fault.begin(bench.store, size):
        made = [bench.run(fault.pieces) for _ in range(RUNS)]
    sound = [*before, bench.run(fault.pieces)]
    records, records_before = [each.record for each in made], [each.record for each in before]
    cost = statistics.median(each.seconds for each in made) / statistics.mean(each.seconds for each in sound) - 1
    return {"sick": sick, "cost": cost, "seconds": [each.seconds for each in made], "sound_seconds": [each.seconds for each in sound],
            "others_share": [each.others_share for each in made], "platform": str(bench.arguments.platform),
            "records": records, "records_before": records_before,
            "after": judge_all(bench.arguments, records_before, records, fault, sick)}


def clean(bench):
    made = [bench.run() for _ in range(RUNS)]
    records = [each.record for each in made]
    return {"seconds": [each.seconds for each in made], "others_share": [each.others_share for each in made],
            "after": [judge(compare(bench.arguments, records))], "platform": str(bench.arguments.platform), "records": records}


# ---- all trials

def platform_of(arguments, store, programs):
    path = arguments.out / f"platform-{arguments.ram}-{programs}.json"
    if not path.exists():
        run(*arguments.before, arguments.bin / "mosa", "identify", "--cluster", store.name, "--dir", store.directory, "-o",
            path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
    return path


def put_up(arguments, clusters, kept):
    # Opens without passthrough: what the kernel does by itself no daemon can be slow at.
    store = clusters.enter_context(
        Cluster(arguments.bin, HOSTS, rate=f"{RATE_MBIT}mbit", ram=arguments.ram, flags=["--no-passthrough"]))
    arguments.platform = arguments.platform or platform_of(arguments, store, kept.build["programs"])
    bench = Bench(arguments, store, store.name)
    bench.run()  # Warm.
    return bench


def measure(arguments, kept):
    wanted = [(fault, size) for fault in LIBRARY for size in fault.sizes if not arguments.fault or fault.name in arguments.fault]
    with contextlib.ExitStack() as clusters:
        bench = None
        for number in range(arguments.trials):
            for fault, size in wanted:
                cell = Cell(fault.name, size)
                if len(kept.all(cell)) > number:
                    continue
                bench = bench or put_up(arguments, clusters, kept)
                try:
                    kept.add(cell, trial(bench, fault, size, SICK[number % len(SICK)]))
                except TROUBLE as error:
                    kept.add(cell, {"failed": str(error)})
                    clusters.close()  # What it has left behind disturbs no other trial.
                    bench = None
                print(f"{fault.name} {size}: {said_of(kept.find(cell))}", file=sys.stderr, flush=True)
        for number in range(len(disjoint(kept.all(CLEAN))), arguments.clean):
            bench = bench or put_up(arguments, clusters, kept)
            kept.add(CLEAN, clean(bench))
            last = kept.find(CLEAN)
            print(f"clean {number + 1}: {last['seconds']} s, others {last['others_share']}, {last['after'][0]}", file=sys.stderr, flush=True)


def disjoint(windows):
    """Those of clean runs that no earlier one of the same programs has: one slow run is one alarm."""
    met, alone = set(), []
    for entry in windows:
        runs = {(entry["programs"], record) for record in entry.get("records", [])}
        if not runs & met:
            alone.append(entry)
            met |= runs
    return alone


KEPT_OF_RUNS = ("sick", "cost", "seconds", "sound_seconds", "others_share", "records", "records_before", "platform")


def judge_again(arguments, kept):
    """Each trial once, however often this is asked; trials that failed failed for these programs, too."""
    faults = {fault.name: fault for fault in LIBRARY}
    for cell in list(kept.cells):
        known = [entry for entry in kept.cells[cell] if entry["programs"] == kept.build["programs"]]
        made = [entry for entry in kept.cells[cell] if "runs_by" not in entry and entry not in known]
        for entry in disjoint(made) if cell == CLEAN else made:
            same = ("failed", "when") if "failed" in entry else ("records",)
            if any(all(each.get(key) == entry.get(key) for key in same) for each in known):
                continue
            if "failed" in entry:
                kept.add(cell, {"failed": entry["failed"], "when": entry["when"], "runs_by": entry["programs"]})
                continue
            if "records" not in entry:
                continue
            arguments.platform = entry["platform"]
            if cell == CLEAN:
                after = [judge(compare(arguments, entry["records"]))]
            else:
                after = judge_all(arguments, entry.get("records_before", []), entry["records"], faults[cell.fault], entry.get("sick", SICK[0]))
            kept.add(cell, {**{key: entry[key] for key in KEPT_OF_RUNS if key in entry}, "runs_by": entry["programs"], "after": after})


def said_of(entry):
    if "failed" in entry:
        return f"failed: {entry['failed']}"
    last = entry["after"][-1]
    return f"{entry['cost']:+.0%}; " + (f"{last['rank']}: {last['said']}" if last["found"] else "-")


def rows(kept):
    for fault in LIBRARY:
        for cell in sorted((cell for cell in kept.cells if cell.fault == fault.name), key=lambda cell: str(cell.size)):
            trials = kept.all(cell)
            done = [each for each in trials if "failed" not in each]
            last = [each["after"][-1] for each in done]
            found = [each for each in last if each["found"]]
            after = [next((n for n, judged in enumerate(each["after"], start=1) if judged["found"]), None) for each in done]
            first = sum(each["rank"] == 1 for each in found)
            if trials:
                yield [fault.name, fault.what.format(host="one host", size=cell.size),
                       f"{statistics.median(each['cost'] for each in done):+.0%}" if done else "-", len(trials),
                       len(trials) - len(done), f"{len(found)} of {len(done)}", ", ".join(str(each or "-") for each in after),
                       f"{first} of {len(done)}", "; ".join(sorted({each["named"] for each in found})),
                       ", ".join(str(each["rank"] or "-") for each in found)]


def clean_rows(windows):
    """Those of a machine that was left alone, of one that was busy, and of one of which it is not known."""
    def kind_of(window):
        shares = window.get("others_share") or [None]
        return "not known" if None in shares else "machine busy" if max(shares) >= BUSY_SHARE else "machine left alone"

    for kind in ("machine left alone", "machine busy", "not known"):
        chosen = [window for window in windows if kind_of(window) == kind]
        if not chosen:
            continue
        seconds = [each for window in chosen for each in window["seconds"]]
        shares = [each for window in chosen for each in window.get("others_share") or [] if each is not None]
        yield [kind, len(chosen), f"{statistics.median(seconds):.3f}", f"{min(seconds):.3f}", f"{max(seconds):.3f}",
               f"{min(shares):.0%} to {max(shares):.0%}" if shares else "-", sum(window["after"][0]["found"] for window in chosen),
               sum(not window["after"][0]["found"] and "said" in window["after"][0] for window in chosen)]


TITLES = ["FAULT", "WHAT", "COST", "TRIALS", "FAILED", "FOUND", "AFTER RUNS", "CULPRIT FIRST", "NAMED FIRST", "ITS RANK"]


def why_not_here(arguments):
    """Why these trials cannot be made, or None."""
    reason = why_not() or next((f"{name} is missing" for name in ("nft", "ss", "cc", "awk") if not shutil.which(name)), None)
    faults = [fault for fault in LIBRARY if not arguments.fault or fault.name in arguments.fault]
    if not reason and not CPU_GROUPS.is_dir() and any(fault.name == "stolen-cpu" for fault in faults):
        reason = f"stolen-cpu needs cgroup v1, whose processors' groups are in {CPU_GROUPS}: name the other faults by --fault"
    by_manager = [fault.name for fault in faults if fault.begin in (wide_lock, one_seed)]
    if not reason and not arguments.again and by_manager and not (arguments.bin / "mosa-manager-faulty").exists():
        reason = f"{', '.join(by_manager)} need {arguments.bin}/mosa-manager-faulty: build that target, or name the other faults by --fault"
    said = (arguments.bin / "mosa").read_bytes()
    for text in (fault.culprits for fault in faults if isinstance(fault.culprits, str)):
        if text.encode() not in said:
            reason = reason or f"`mosa compare` can never say '{text}', by which a fault is known"
    return reason


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, help="the directory of mosa and its daemons; --table needs none")
    parser.add_argument("--fault", action="append", default=[], choices=[fault.name for fault in LIBRARY], help="these alone")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--clean", type=int, default=0, help=f"windows of {RUNS} runs without any fault")
    parser.add_argument("--platform", type=pathlib.Path, help="instead of `mosa identify`")
    parser.add_argument("-o", "--output", dest="out", type=pathlib.Path, default=pathlib.Path("faults.out"))
    parser.add_argument("--cells", type=pathlib.Path, help="default: OUT/trials.jsonl")
    parser.add_argument("--ram", default="1G")
    parser.add_argument("--before", default="", help="words before each measuring command, to share a machine")
    parser.add_argument("--any-commit", action="store_true", help="count trials of other programs, too")
    parser.add_argument("--again", action="store_true", help="no new runs: compare the records of kept trials with these programs")
    parser.add_argument("--table", action="store_true", help="only show what is kept, as Markdown; without --bin of all programs")
    arguments = parser.parse_args()
    end_as_interrupted()
    if not arguments.bin and not arguments.table:
        parser.error("--bin is missing: the programs whose runs are compared")
    arguments.bin, arguments.before = arguments.bin and arguments.bin.resolve(), arguments.before.split()
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    build = build_of(arguments.bin) if arguments.bin else None
    kept = Kept(arguments.cells or arguments.out / "trials.jsonl", build, arguments.any_commit or not build, Cell)
    failure = None
    if not arguments.table:
        reason = why_not_here(arguments)
        if reason:
            sys.exit(f"faults.py: {reason}")
        try:
            (judge_again if arguments.again else measure)(arguments, kept)
        except (*TROUBLE, KeyboardInterrupt) as error:
            failure = str(error) or "interrupted: the same command goes on"
    show = (lambda *table: print(to_markdown(*table) + "\n")) if arguments.table else print_table
    show(TITLES, list(rows(kept)))
    windows = list(clean_rows(disjoint(kept.all(CLEAN))))
    if windows:
        show([f"WINDOWS OF {RUNS} CLEAN RUNS", "NUMBER", "SECONDS", "LEAST", "MOST", "OTHERS HAD", "SOMETHING FOUND", "MACHINE BUSY SAID"], windows)
    print(f"programs {', '.join(sorted({each['programs'] for cell in kept.cells for each in kept.all(cell)})) or '-'}")
    if failure:
        sys.exit(f"faults.py: {failure}")


if __name__ == "__main__":
    main()
