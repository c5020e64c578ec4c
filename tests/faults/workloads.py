"""Workflows for trials of faults: graphs of ordinary programs (cat, awk, dd) of several shapes and of random ones.

Each function returns a workflow in Mosa's own form with a size for every file and the loops of awk for every task; with_runtimes()
measures the processor seconds that they take here. Half of the shapes are for building rules with, the others are sealed.
"""

import collections
import random
import resource
import statistics
import subprocess

# A stage, or all of them, computes longer where the environment says so, in tenths: an application's fault.
COMPUTE = "awk 'BEGIN{for(i=0;i<'$((%d*${SLOW_%s:-${SLOW_ALL:-10}}/10))';i++)x+=i}'"
WRITE = "dd if=/dev/zero of=%s bs=1M iflag=count_bytes count=%d status=none"
MB = 1_000_000


class Graph:
    def __init__(self, name):
        self.name, self.tasks, self.files = name, [], {}

    def task(self, name, inputs, outputs, loops):
        """outputs: sizes by file."""
        words = [f"cat {' '.join(inputs)} > /dev/null"] if inputs else []
        words.append(COMPUTE % (2 * loops, name.partition("_")[0]))
        words += [WRITE % (path, size) for path, size in outputs.items()]
        self.tasks.append({"id": name, "command": " && ".join(words), "inputs": list(inputs), "outputs": list(outputs), "loops": 2 * loops})
        self.files.update({path: {"size": size} for path, size in outputs.items()})
        return list(outputs)

    def form(self):
        return {"name": self.name, "tasks": self.tasks, "files": self.files}


def pipeline(hosts, scale):
    graph = Graph("pipeline")
    for lane in range(2 * hosts):
        last = []
        for stage in range(3):
            last = graph.task(f"stage{stage}_{lane}", last, {f"p{lane}.{stage}": round(6 * MB * scale)}, 2_000_000)
    return graph.form()


def broadcast(hosts, scale):
    graph = Graph("broadcast")
    shared = graph.task("make_0", [], {"shared": round(20 * MB * scale)}, 3_000_000)
    parts = [graph.task(f"use_{i}", shared, {f"part.{i}": round(2 * MB * scale)}, 4_000_000)[0] for i in range(3 * hosts)]
    graph.task("gather_0", parts, {"all": 2 * MB}, 2_000_000)
    return graph.form()


def align(hosts, scale):
    """A table that all read, pieces of reads, alignments, and merges of some of them, with many small logs."""
    graph = Graph("align")
    table = graph.task("index_0", [], {"table": round(12 * MB * scale)}, 3_000_000)
    merged = []
    for i in range(2 * hosts):
        reads = graph.task(f"split_{i}", [], {f"reads.{i}": round(5 * MB * scale)}, 1_500_000)
        hits = graph.task(f"align_{i}", table + reads, {f"hits.{i}": round(3 * MB * scale), f"log.{i}": 2000}, 5_000_000)
        merged.append(hits[0])
    for i in range(hosts):
        graph.task(f"merge_{i}", merged[i::hosts], {f"merged.{i}": 2 * MB, f"count.{i}": 100}, 3_000_000)
    return graph.form()


def mosaic(hosts, scale):
    """As Montage: projections, differences of neighbours, a fit of all, corrections, a sum."""
    graph = Graph("mosaic")
    count = 3 * hosts
    tiles = [graph.task(f"project_{i}", [], {f"tile.{i}": round(4 * MB * scale)}, 1_500_000)[0] for i in range(count)]
    fits = []
    for i in range(count):
        fits += graph.task(f"diff_{i}", [tiles[i], tiles[(i + 1) % count]], {f"fit.{i}": 400}, 1_000_000)
    model = graph.task("model_0", fits, {"model": 5000}, 1_000_000)
    fixed = [graph.task(f"fix_{i}", [tiles[i], *model], {f"fixed.{i}": round(4 * MB * scale)}, 1_000_000)[0] for i in range(count)]
    graph.task("add_0", fixed, {"mosaic": round(16 * MB * scale)}, 2_000_000)
    return graph.form()


def manysmall(hosts, scale):
    graph = Graph("manysmall")
    for i in range(3 * hosts):
        notes = graph.task(f"note_{i}", [], {f"note.{i}.{k}": 2000 for k in range(12)}, 1_000_000)
        graph.task(f"read_{i}", notes, {f"sum.{i}": round(MB * scale)}, 1_500_000)
    return graph.form()


def random_graph(seed):
    def make(hosts, scale):
        chance = random.Random(f"graph {seed}")
        graph = Graph(f"random{seed}")
        before = []
        for layer in range(chance.randint(3, 5)):
            width = chance.choice([hosts, 2 * hosts, 3 * hosts])
            loops, size = chance.randint(1, 6) * 800_000, round(chance.choice([0.2, 1, 3, 6]) * MB * scale)
            fan, made = chance.choice([1, 2, 3]), []
            for i in range(width):
                inputs = sorted({chance.choice(before) for _ in range(fan)}) if before else []
                made += graph.task(f"layer{layer}_{i}", inputs, {f"r{layer}.{i}": size}, loops)
            before = made
        return graph.form()
    return make


TRAINING = {"align": align, "pipeline": pipeline, "mosaic": mosaic, "random1": random_graph(1), "random2": random_graph(2)}
SEALED = {"broadcast": broadcast, "manysmall": manysmall, "random11": random_graph(11), "random12": random_graph(12), "random13": random_graph(13)}


def with_runtimes(form, scratch):
    """Each task has the processor seconds that it takes with its files in memory: the median of five of the first of its kind."""
    known = {}
    for task in form["tasks"]:
        sizes = [[form["files"][path]["size"] // 100_000 for path in task[key]] for key in ("inputs", "outputs")]
        kind = (task["id"].partition("_")[0], str(sizes))
        if kind not in known:
            for path in task["inputs"]:
                (scratch / path).write_bytes(bytes(form["files"][path]["size"]))
            taken = []
            for _ in range(5):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(["bash", "-c", "set -euo pipefail; " + task["command"]], cwd=scratch, check=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            known[kind] = statistics.median(taken)
        task["runtime"] = round(known[kind], 4)
        del task["loops"]
    return form


def stages(form):
    return collections.Counter(task["id"].partition("_")[0] for task in form["tasks"])
