#!/usr/bin/env python3
"""Makes trials of faults: runs of a workflow on a cluster with one thing wrong, and on the same cluster with nothing wrong.

  tests/faults/trials.py --bin build/release/bin -o faults.out --half training --minutes 60
  tests/faults/judge.py --mosa build/release/bin/mosa faults.out -o answers.jsonl   # what `mosa compare` says of them

Clusters, workflows, faults and their sizes are drawn at random from one half of the kinds (kinds.py) and of the workflows
(workloads.py); the sealed half is for one test, after all rules are made. Each trial has two sound runs from before, three with the
fault, and one after. Platforms are measured by `mosa identify` on the sound cluster before any run. Everything that is needed to
judge a trial again is kept below -o: platform, workflow, records, and a line in trials.jsonl that says what was wrong. Needs root
(namespaces), nft, ss, cc and cgroup v1.
"""

import argparse
import contextlib
import itertools
import json
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

import kinds  # It finds the folders of the next two.
import workloads
from cluster import Cluster
from harness import TROUBLE, build_of, end_as_interrupted, run

SOUND_RUNS, FAULTY_RUNS = 2, 3


def others_share(record):
    shares = [machine["others_s"] / machine["seconds"] / machine["processors"] for machine in record.get("machines") or [] if "others_s" in machine]
    return round(max(shares), 4) if shares else None


class Bench:
    """A cluster that is up, one workflow, and its runs."""

    def __init__(self, arguments, store, spec, number):
        self.arguments, self.store, self.spec = arguments, store, spec
        self.directory = arguments.out / f"cluster-{number}"
        self.directory.mkdir(parents=True, exist_ok=True)
        store.rate_mbit, store.node_port, store.scratch = spec["rate_mbit"], 7401, self.directory
        self.numbers = itertools.count(len(list(self.directory.glob("r*.json"))))
        self.sound = {}

    def identify(self):
        path = self.directory / "platform.json"
        if not path.exists():
            run(self.arguments.bin / "mosa", "identify", "--cluster", self.store.name, "--dir", self.store.directory, "-o", path)
        return path

    def begin(self, name, scale):
        """The workflow of the runs to come."""
        every = {**workloads.TRAINING, **workloads.SEALED}
        with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
            form = workloads.with_runtimes(every[name](self.spec["hosts"], scale), pathlib.Path(scratch))
        self.workflow = self.directory / f"{name}.json"
        self.workflow.write_text(json.dumps(form), encoding="utf-8")
        self.store.stages = workloads.stages(form)
        self.sound = [self.run() for _ in range(SOUND_RUNS + 1)][1:]  # The first one warms.

    def run(self):
        name = f"r{next(self.numbers)}"
        record = self.directory / f"{name}.json"
        run(self.arguments.bin / "mosa", "run", self.workflow, "--cluster", self.store.name, "--dir", self.store.directory,
            "--system", self.spec["system"], "--slots", self.spec["slots"], "--workdir", name, "--record", record, limit_s=300)
        shutil.rmtree(pathlib.Path(self.store.mount("h1")) / name)
        said = json.loads(record.read_text(encoding="utf-8"))
        return {"record": record.name, "seconds": said["turnaround_seconds"], "others_share": others_share(said)}

    def trial(self, kind, size):
        before = self.sound[-SOUND_RUNS:]
        with kind.begin(self.store, size):
            faulty = [self.run() for _ in range(FAULTY_RUNS)]
        self.sound.append(self.run())
        cost = statistics.median(each["seconds"] for each in faulty) / statistics.mean(each["seconds"] for each in [*before, self.sound[-1]]) - 1
        return {"kind": kind.name, "size": size, "sick": self.store.sick, "culprits": kind.culprits, "cost": cost, "before": before, "faulty": faulty,
                "after": self.sound[-1]}

    def clean(self):
        made = [self.run() for _ in range(FAULTY_RUNS)]
        before, self.sound = self.sound[-SOUND_RUNS:], [*self.sound, *made]
        return {"kind": "none", "size": None, "sick": None, "culprits": [], "cost": 0.0, "before": before, "faulty": made, "after": None}


def draw_specs(chance, count):
    return [{"hosts": chance.choice([3, 4, 5, 6]), "rate_mbit": chance.choice([80, 100, 150, 200, 300]), "slots": chance.choice([1, 1, 2]),
             "system": chance.choice(["dss", "wass"])} for _ in range(count)]


def keep(arguments, bench, facts):
    entry = {"half": arguments.half, "cluster": bench.directory.name, **bench.spec, "workflow": bench.workflow.name, **arguments.build,
             "when": time.strftime("%F %TZ", time.gmtime()), **facts}
    with (arguments.out / "trials.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    print(f"{bench.directory.name} {bench.workflow.stem} {facts['kind']} {facts.get('size')}: {facts.get('cost', 0):+.0%} {facts.get('failed', '')}", flush=True)


def rounds(arguments, chance):
    """Trials in a random order in which every kind comes as often: (kind, size)."""
    while True:
        chosen = [kind for kind in kinds.KINDS if kind.sealed == (arguments.half == "sealed") and kind.name not in arguments.without]
        chance.shuffle(chosen)
        for kind in chosen:
            yield kind, chance.choice(kind.sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("-o", "--output", dest="out", type=pathlib.Path, default=pathlib.Path("faults.out"))
    parser.add_argument("--half", choices=["training", "sealed"], default="training")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--clusters", type=int, default=3)
    parser.add_argument("--clean-share", type=float, default=0.2, help="of trials in which nothing is wrong")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", action="append", default=[], help="a kind that is left out")
    arguments = parser.parse_args()
    end_as_interrupted()
    arguments.bin, arguments.out = arguments.bin.resolve(), arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.build = build_of(arguments.bin)
    chance = random.Random(f"{arguments.half} {arguments.seed}")
    names = sorted(workloads.SEALED if arguments.half == "sealed" else workloads.TRAINING)
    order = rounds(arguments, chance)
    begun, each_s = time.monotonic(), 60 * arguments.minutes / arguments.clusters
    for number, spec in enumerate(draw_specs(chance, arguments.clusters)):
        until = begun + each_s * (number + 1)
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(Cluster(arguments.bin, spec["hosts"], rate=f"{spec['rate_mbit']}mbit", ram="1G"))
            bench = Bench(arguments, store, spec, f"{arguments.half}-{arguments.seed}-{number}")
            bench.identify()
            chosen = chance.sample(names, 2)
            for part, name in enumerate(chosen):
                middle = until - each_s / 2 if part == 0 else until
                # Links matter more or less, whatever they carry.
                bench.begin(name, chance.choice([0.7, 1.5, 2.5]) * spec["hosts"] * spec["rate_mbit"] / 400)
                while time.monotonic() < middle:
                    if chance.random() < arguments.clean_share:
                        keep(arguments, bench, bench.clean())
                        continue
                    kind, size = next(order)
                    store.sick = chance.choice(store.hosts)
                    try:
                        keep(arguments, bench, bench.trial(kind, size))
                    except TROUBLE as error:
                        keep(arguments, bench, {"kind": kind.name, "size": size, "sick": store.sick, "failed": str(error)[-300:]})


if __name__ == "__main__":
    sys.exit(main())
