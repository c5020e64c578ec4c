#!/usr/bin/env python3
"""What tracing costs: the same programs on the same mount, traced and not, by turns.

  tests/bench/trace.py --bin build/release/bin
  tests/bench/trace.py --bin build/release/bin --turns 30 --out trace.json

Two clusters of one host (root), one with kernel passthrough, one without. A full trace is set against its own mount
untraced on either, a light one on the one with passthrough. Each turn measures every way once, in an order that
changes; a ratio is of one turn, and the table has the geometric mean of all turns with its 95 % interval (Student's t),
of wall time and of CPU time (of the programs and the mount together). What a full trace costs on a mount with
passthrough is mostly passthrough itself. Exit code 1 if the whole interval lies above a goal (0 with --no-gate):
3 % for a full trace without passthrough, 1 % for a light one.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from cluster import Cluster, placed_directory, why_not  # noqa: E402

PHASES = ["write", "overwrite", "read", "reread", "create-small", "stat", "open", "unlink"]
# Student's t for 95 %, by degrees of freedom; beyond, the normal distribution's.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 12: 2.18, 15: 2.13,
       20: 2.09, 25: 2.06, 30: 2.04, 40: 2.02, 60: 2.00}
GOALS = {"full, no passthrough": 1.03, "light, passthrough": 1.01}


def t95(freedom):
    return T95[max(k for k in T95 if k <= freedom)] if freedom >= 1 else math.inf


def interval(ratios):
    """The geometric mean, and where it lies with 95 %."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    half = t95(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


class Bench:
    def __init__(self, arguments, directory):
        self.mosa = str(pathlib.Path(arguments.bin).resolve() / "mosa")
        beside = pathlib.Path(arguments.bin).resolve()
        self.program = next(str(p / "mount_bench") for p in (beside, beside.parent / "tests" / "bench")
                            if (p / "mount_bench").exists())
        self.arguments = arguments
        self.directory = pathlib.Path(directory)

    def run(self, store, trace, block):
        """Seconds and CPU seconds of every phase, under a trace or none."""
        mount = store.mount("h1")
        traces = self.directory / "traces"
        if trace:
            flags = ["--light"] if trace == "light" else []
            subprocess.run([self.mosa, "trace", "start", mount, "-o", traces, *flags], check=True, capture_output=True)
        files = self.arguments.files
        done = subprocess.run([self.program, f"{mount}/bench", "--phases", ",".join(PHASES), "--size", self.arguments.size,
                               "--block", block, "--files", str(files), "--file-bytes", "4096",
                               "--pid", str(store.pid("mount", "h1"))],
                              check=True, capture_output=True, text=True)
        if trace:
            stopped = subprocess.run([self.mosa, "--json", "trace", "stop", mount], capture_output=True, text=True)
            dropped = sum(each["dropped"] for each in json.loads(stopped.stdout))
            if stopped.returncode not in (0, 6):
                raise SystemExit(stopped.stderr)
            self.dropped += dropped
            shutil.rmtree(traces)
        return {p["phase"]: (p["seconds"], p["cpu_s"]["all"]) for p in json.loads(done.stdout)["phases"]}

    def measure(self):
        """Ratios by way, block and phase: a list of (wall, CPU), one for each turn."""
        self.dropped = 0
        ratios = {}
        flags = {"passthrough": [], "no passthrough": ["--no-passthrough"]}
        for kind, more in flags.items():
            with Cluster(self.arguments.bin, 1, ram="1G", flags=more) as store:
                placed_directory(f"{store.mount('h1')}/bench", "local")
                ways = [None, "full", "light"] if kind == "passthrough" else [None, "full"]
                for block in self.arguments.blocks.split(","):
                    self.run(store, None, block)  # Warm.
                    for turn in range(self.arguments.turns):
                        order = ways[turn % len(ways):] + ways[:turn % len(ways)]
                        one = {way: self.run(store, way, block) for way in order}
                        for way in ways[1:]:
                            for phase in PHASES:
                                pairs = zip(one[way][phase], one[None][phase])
                                ratio = tuple(max(new, 1e-4) / max(old, 1e-4) for new, old in pairs)
                                ratios.setdefault((f"{way}, {kind}", block, phase), []).append(ratio)
        return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the directory of mosa and its daemons")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--size", default="64M", help="bytes of a stream")
    parser.add_argument("--blocks", default="1M,4K", help="bytes of its reads and writes")
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--out", help="write all ratios as JSON here")
    parser.add_argument("--no-gate", action="store_true")
    arguments = parser.parse_args()
    if why_not():
        raise SystemExit(f"cannot measure: {why_not()}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        bench = Bench(arguments, directory)
        ratios = bench.measure()
    print(f"{arguments.turns} turns on Linux {platform.release()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
          f"records dropped: {bench.dropped}\n")
    print("| trace | block | phase | wall | 95 % | CPU | 95 % |\n|---|---|---|---|---|---|---|")
    missed = []
    rows = []
    for (way, block, phase), turns in ratios.items():
        wall, cpu = (interval([turn[k] for turn in turns]) for k in (0, 1))
        rows.append({"trace": way, "block": block, "phase": phase, "wall": wall, "cpu": cpu, "turns": turns})
        print(f"| {way} | {block} | {phase} | {wall[0]:.3f} | {wall[1]:.3f} to {wall[2]:.3f} | {cpu[0]:.3f} | "
              f"{cpu[1]:.3f} to {cpu[2]:.3f} |")
    # All phases of a way together: every turn's ratio of sums would be that of the longest.
    print("\n| trace | all phases | 95 % | CPU | 95 % | goal |\n|---|---|---|---|---|---|")
    for way in dict.fromkeys(key[0] for key in ratios):
        cells = [turns for key, turns in ratios.items() if key[0] == way]
        of_turns = [[math.exp(statistics.fmean(math.log(cell[turn][k]) for cell in cells))
                     for turn in range(arguments.turns)] for k in (0, 1)]
        wall, cpu = interval(of_turns[0]), interval(of_turns[1])
        goal = GOALS.get(way)
        if goal and wall[1] > goal:
            missed.append(way)
        rows.append({"trace": way, "wall": wall, "cpu": cpu, "goal": goal})
        print(f"| {way} | {wall[0]:.3f} | {wall[1]:.3f} to {wall[2]:.3f} | {cpu[0]:.3f} | {cpu[1]:.3f} to {cpu[2]:.3f} | "
              f"{goal or '-'} |")
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(rows, indent=1))
    if missed:
        print(f"\nabove its goal: {', '.join(missed)}")
    sys.exit(1 if missed and not arguments.no_gate else 0)


if __name__ == "__main__":
    main()
