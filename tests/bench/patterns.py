#!/usr/bin/env python3
"""The papers' patterns on emulated clusters: time, bytes, plots, and what was to be reached.

  tests/bench/patterns.py --bin build/release/bin --output results/
  tests/bench/patterns.py --bin build/release/bin --output results/ --hosts 4 --repeats 3..5
  tests/bench/patterns.py --bin build/release/bin --output results/ --hosts 19 --rate 100 \
      --patterns broadcast --sizes medium --systems dss,wass

For each number of hosts: a cluster of namespaces (root), `mosa bench patterns` on it for the store
without hints (dss), with them (wass), a tmpfs of each host's own (local), and one server for all
behind one link (central: the same store, all files on h1). Writes patterns-N.json, patterns-N.txt,
plots-N/*.svg and targets.md into --output; what is in the JSON already is not run again. Exit code 1
if a target was missed (0 with --no-gate).

A bound is by byte count: what the busiest link has to carry at best, at the rate of TCP's payload.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from cluster import Cluster, check, placed_directory, why_not  # noqa: E402

PLOT = HERE.parents[1] / "tools" / "python" / "plot_patterns.py"
PAYLOAD_SHARE = 1448 / 1514  # Of an Ethernet frame that is full.
SIZES = ("small", "medium", "large")


def measure(arguments, hosts):
    """The cells of one cluster, by (pattern, size, system, copies)."""
    out = arguments.out / f"patterns-{hosts}.json"
    print(f"{hosts} hosts of {arguments.rate} Mbit/s", file=sys.stderr, flush=True)
    cluster = Cluster(arguments.bin, hosts, rate=f"{arguments.rate}mbit", ram=arguments.ram)
    cluster.name = f"patterns-{hosts}"  # The same each time, since what was measured there is kept.
    with cluster as store:
        placed_directory(f"{store.mount('h1')}/central", "node:h1")
        mounts = store.mount("h1").replace("/h1/", "/{host}/")
        command = [str(arguments.bin / "mosa"), "bench", "patterns", "--name", store.name, "--map"]
        command += ["--dir", str(store.directory), "--repeats", arguments.repeats]
        command += ["--sizes", arguments.sizes, "--scale", arguments.scale, "--output", str(out)]
        central = f"path=central:{mounts}/central"
        systems = [central if system == "central" else system for system in arguments.systems.split(",")]
        command += ["--systems", ",".join(systems)]
        if arguments.patterns:
            command += ["--patterns", arguments.patterns]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        check(done.returncode == 0, f"{' '.join(command)} failed: {done.returncode}")
    (arguments.out / f"patterns-{hosts}.txt").write_text(done.stdout)
    subprocess.run([sys.executable, PLOT, out, arguments.out / f"plots-{hosts}"], check=True)
    cells = json.loads(out.read_text())["cells"]
    return {(c["pattern"], c["size"], c["system"], c["copies"]): c for c in cells}


def seconds(cell):
    return cell["seconds"]["stages"]["mean"]


def over(cell, system):
    """How many times as fast as the other system, turn by turn; None if that was not measured."""
    speedup = cell["speedup_over"].get(system)
    return speedup["median"] if speedup else None


def stage_bytes(cell, stage, what):
    runs = cell["runs"][0]["tasks_by_stage"]
    return next(s[what] for s in runs if s["stage"] == stage)


def stage_seconds(cell, stage):
    runs = (s for run in cell["runs"] for s in run["tasks_by_stage"])
    return statistics.median(s["seconds"] for s in runs if s["stage"] == stage)


class Targets:
    """Rows of: hosts, pattern, size, what, figure, target."""

    def __init__(self):
        self.rows = []

    def at_least(self, where, what, figure, target):
        if figure is not None:
            self.rows.append((*where, what, figure, f">= {target:g}", figure >= target))

    def at_most(self, where, what, figure, target):
        self.rows.append((*where, what, figure, f"<= {target:g}", figure <= target))

    def missed(self):
        return [row for row in self.rows if not row[-1]]

    def markdown(self):
        lines = ["| hosts | pattern | size | what | figure | target | reached |", "|---|---|---|---|---|---|---|"]
        for hosts, pattern, size, what, figure, target, reached in self.rows:
            said = "yes" if reached else "**no**"
            lines.append(f"| {hosts} | {pattern} | {size} | {what} | {figure:.2f} | {target} | {said} |")
        return "\n".join(lines) + "\n"


def judge(targets, hosts, rate, cells):
    link = rate * 1e6 / 8 * PAYLOAD_SHARE  # Bytes per second.
    remote = (hosts - 1) / hosts
    sizes = [size for size in SIZES if any(key[1] == size for key in cells)]
    for size in sizes:
        small = size == "small"
        if wass := cells.get(("pipeline", size, "wass", 0)):
            where = (hosts, "pipeline", size)
            targets.at_least(where, "times dss", over(wass, "dss"), 1 if small else 2)
            if faster := over(wass, "local"):
                targets.at_most(where, "of local's time", 1 / faster, 1.5 if small else 1.15)
            if hosts >= 19 and not small:
                targets.at_least(where, "times one server", over(wass, "central"), 6)
        if wass := cells.get(("reduce", size, "wass", 0)):
            where = (hosts, "reduce", size)
            if small or hosts < 19:
                targets.at_least(where, "times dss", over(wass, "dss"), 1 if small else 2)
            else:
                bytes_in = stage_bytes(wass, "write", "written_bytes") * remote
                targets.at_least(where, "of the bound", bytes_in / link / seconds(wass), 0.9)
        if copies := [c for key, c in cells.items() if key[:2] == ("broadcast", size) and key[3] > 0]:
            where = (hosts, "broadcast", size)
            best = min(copies, key=seconds)
            what = f"times dss, {best['copies']} copies"
            targets.at_least(where, what, over(best, "dss"), 1 if small else 1.2)
            if not small:
                bound = stage_bytes(best, "write", "written_bytes") / link
                targets.at_least(where, "of the bound", bound / seconds(best), 0.9)
            # Until all have it, beside a writer who leaves the others' bytes at other hosts.
            everywhere = cells.get(("broadcast", size, f"wass-{hosts}", hosts))
            plain = cells.get(("broadcast", size, "dss", 0))
            if hosts >= 19 and not small and everywhere and plain:
                slowdown = stage_seconds(everywhere, "write") / stage_seconds(plain, "write")
                targets.at_most(where, f"of dss' write, {hosts} copies", slowdown, 1.3)
        for pattern, stage, what in (("scatter", "write", "written_bytes"), ("gather", "read", "read_bytes")):
            wass = cells.get((pattern, size, "wass", 0))
            if wass and small:
                targets.at_least((hosts, pattern, size), "times dss", over(wass, "dss"), 1)
            elif wass:
                bound = stage_bytes(wass, stage, what) * remote / link
                targets.at_least((hosts, pattern, size), "of its link", bound / seconds(wass), 0.85)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="with mosa and the daemons")
    parser.add_argument("-o", "--output", dest="out", type=pathlib.Path, required=True, help="a directory")
    parser.add_argument("--hosts", default="4,8,19")
    parser.add_argument("--rate", type=int, default=200, help="of each link, in Mbit/s")
    parser.add_argument("--scale", default="small=1,medium=0.1,large=0.02")
    parser.add_argument("--repeats", default="10..20")
    parser.add_argument("--patterns", help="all, unless named")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--systems", default="dss,wass,local,central")
    parser.add_argument("--ram", default="3G", help="of each node: with less than 2G no kernel writes by itself")
    parser.add_argument("--no-gate", action="store_true")
    arguments = parser.parse_args()
    if reason := why_not():
        sys.exit(f"patterns.py: {reason}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.bin = arguments.bin.resolve()
    targets = Targets()
    for hosts in map(int, arguments.hosts.split(",")):
        judge(targets, hosts, arguments.rate, measure(arguments, hosts))
    cores = os.cpu_count()
    head = f"{cores} cores, Linux {platform.release()}, {arguments.rate} Mbit/s, {arguments.scale}, repeats {arguments.repeats}\n\n"
    (arguments.out / "targets.md").write_text(head + targets.markdown())
    print(head + targets.markdown())
    if targets.missed() and not arguments.no_gate:
        sys.exit(1)


if __name__ == "__main__":
    main()
