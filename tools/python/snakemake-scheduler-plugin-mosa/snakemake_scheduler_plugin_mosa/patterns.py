"""Which pattern of use each output of a workflow has, told from the graph, and the rules that say
so to the store.

The same decisions as of `mosa run` (predictor/workflow/patterns.h). Pure: values in, values out.
"""

import collections
import dataclasses
import hashlib
import os
import re

# More than eight copies of a file cost more than they gain.
BROADCAST_COPIES_MAX = 8


@dataclasses.dataclass(frozen=True)
class Task:
    """What a job reads and writes, and which of its outputs vanish when their last reader has
    ended."""

    inputs: tuple
    outputs: tuple
    temporary: frozenset = frozenset()


def group_of(reader):
    """The name of the group of files that `reader` gathers: short, plain, and no other job's."""
    first = min(reader.outputs, default="")
    plain = re.sub(r"[^0-9A-Za-z_.-]", "_", os.path.basename(first))[:40]
    return f"{plain}-{hashlib.sha1(first.encode()).hexdigest()[:8]}"


def levels(tasks, writer):
    """How many tasks must end one after the other before each task, by its place in `tasks`."""
    known = {}
    for start in range(len(tasks)):
        waiting = [start]
        while waiting:
            task = waiting[-1]
            before = {writer[path] for path in tasks[task].inputs if path in writer}
            unknown = [other for other in before if other not in known]
            if unknown:
                waiting.extend(unknown)
            else:
                known[task] = 1 + max((known[other] for other in before), default=-1)
                waiting.pop()
    return known


def plan_hints(tasks, hosts):
    """{output: (hint, ...)} for every output that some task reads or that is temporary.

    A task without outputs, as the rule `all`, reads nothing: it names the results.
    """
    readers = collections.defaultdict(list)
    writer = {path: number for number, task in enumerate(tasks) for path in task.outputs}
    for number, task in enumerate(tasks):
        for path in dict.fromkeys(task.inputs if task.outputs else ()):
            readers[path].append(number)
    level = levels(tasks, writer)
    # The jobs of each level that write such files: what one job writes lies on one host.
    fan_outs = collections.defaultdict(set)
    for path in readers:
        if path in writer and len(readers[path]) > 1:
            fan_outs[level[writer[path]]].add(writer[path])

    def pattern(path):
        if not readers[path]:
            return ()  # A result.
        if len(readers[path]) > 1:
            writers = len(fan_outs[level[writer[path]]])
            copies = min(len(readers[path]), -(-hosts // writers), BROADCAST_COPIES_MAX)
            # One of many such files: they spread their readers by themselves.
            return (f"pattern=broadcast:{copies}",) if copies > 1 else ("placement=local",)
        reader = tasks[readers[path][0]]
        writers = {
            writer[other] for other in reader.inputs if other in writer and len(readers[other]) == 1
        }
        return (
            (f"pattern=reduce:{group_of(reader)}",) if len(writers) > 1 else ("pattern=pipeline",)
        )

    plans = {}
    for task in tasks:
        for path in task.outputs:
            hints = pattern(path) + (("lifetime=temporary",) if path in task.temporary else ())
            if hints:
                plans[path] = hints
    return plans


def quoted(path):
    """A glob that only `path` matches."""
    return re.sub(r"([*?\[\\])", r"\\\1", path)


def plan_rules(outputs, plans):
    """[(glob, hints)]: one for a directory all of whose outputs want the same, else one for each
    output."""
    by_directory = collections.defaultdict(list)
    for path in outputs:
        by_directory[os.path.dirname(path)].append(path)
    rules = []
    for directory, paths in sorted(by_directory.items()):
        wanted = {plans.get(path, ()) for path in paths}
        if directory and len(paths) > 1 and len(wanted) == 1:
            rules += [(f"{quoted(directory)}/*", hints) for hints in wanted if hints]
        else:
            rules += [(quoted(path), plans[path]) for path in paths if path in plans]
    return rules
