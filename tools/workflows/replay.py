#!/usr/bin/env python3
"""A recorded workflow over a Mosa cluster on this machine: each task reads its inputs, computes as
long as it did, and writes its outputs, and every byte that is read is verified.
 The record is an instance in WfFormat 1.5, such as those of WfCommons' WfInstances. Bytes and
seconds are scaled so that all files together, and all tasks together, have what is asked for.

    tools/workflows/replay.py rnaseq-dirt02-001.json --mosa build/release/bin/mosa --rate 200mbit
    tools/workflows/replay.py rnaseq-dirt02-001.json --mosa build/release/bin/mosa --rate 200mbit \\
        --bytes 300000000 --seconds 20 --platform lab.json

Exit code 0 only if everything is equal.
"""

import json
import pathlib
import re
import shutil
import sys

import comparison
import replay_task

HERE = pathlib.Path(__file__).resolve().parent
# A file without a size in the record has this one.
LEAST_BYTES = 1


def stage_of(task):
    """What tasks of one kind share: the name without what numbers them."""
    name = re.sub(r"([_-]?(ID)?\d)+$", "", task.get("name", task["id"]))
    return re.sub(r"[^A-Za-z0-9._-]", "_", name.split(".")[-1]) or "task"


def processor_seconds(executed):
    """Of an executed task. Without a figure for its processor use it has computed all the time."""
    return executed.get("runtimeInSeconds", 0) * executed.get("avgCPU", 100) / 100


class Record:
    """What a recorded workflow says of its tasks and files; ids are the record's."""

    def __init__(self, path):
        workflow = json.loads(path.read_text(encoding="utf-8"))["workflow"]
        specification = workflow["specification"]
        self.tasks = specification["tasks"]
        self.sizes = {
            file["id"]: file.get("sizeInBytes", 0) for file in specification.get("files", [])
        }
        self.seconds = {
            task["id"]: processor_seconds(task)
            for task in workflow.get("execution", {}).get("tasks", [])
        }
        self.makers = {}
        for task in self.tasks:
            for file in task.get("outputFiles", []):
                self.makers.setdefault(file, task)

    def inputs_of(self, task):
        """What it reads, without what it writes itself."""
        own = set(self.outputs_of(task))
        return [file for file in dict.fromkeys(task.get("inputFiles", [])) if file not in own]

    def outputs_of(self, task):
        """What it is the first to write."""
        files = dict.fromkeys(task.get("outputFiles", []))
        return [file for file in files if self.makers[file] is task]

    def files(self):
        used = {}
        for task in self.tasks:
            used.update(dict.fromkeys([*self.inputs_of(task), *self.outputs_of(task)]))
        return list(used)


class Replay(comparison.Application):
    name = "replay"
    ram = "1G"

    def add_arguments(self, parser):
        parser.add_argument("record", type=pathlib.Path, help="the recorded workflow, WfFormat 1.5")
        parser.add_argument("--bytes", type=int, default=300_000_000, help="of all files together")
        parser.add_argument(
            "--seconds", type=float, default=20, help="of a processor, of all tasks together"
        )

    def check(self, arguments):
        try:
            Record(arguments.record)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise comparison.Failed(
                f"{arguments.record} cannot be read as WfFormat 1.5: {problem!r}"
            ) from problem

    def prepare(self, arguments, inputs):
        record = Record(arguments.record)
        files = record.files()
        all_bytes = sum(record.sizes.get(file, 0) for file in files)
        all_seconds = sum(record.seconds.get(task["id"], 0) for task in record.tasks)
        byte_scale = arguments.bytes / all_bytes if all_bytes else 0
        time_scale = arguments.seconds / all_seconds if all_seconds else 0
        print(
            f"{arguments.record.stem}: bytes times {byte_scale:.4g}, seconds times {time_scale:.4g}"
        )
        paths, sizes = {}, {}
        for number, file in enumerate(files):
            maker = record.makers.get(file)
            paths[file] = f"{stage_of(maker) if maker else 'inputs'}/{number}"
            sizes[file] = max(LEAST_BYTES, round(record.sizes.get(file, 0) * byte_scale))
        (inputs / "inputs").mkdir()
        for file in files:
            if file not in record.makers:
                (inputs / paths[file]).write_bytes(
                    b"".join(replay_task.blocks_of(paths[file], sizes[file]))
                )
        shutil.copy(HERE / "replay_task.py", inputs)
        tasks = []
        for task in record.tasks:
            reads, writes = record.inputs_of(task), record.outputs_of(task)

            def words(option, chosen):
                return [option, *[f"{paths[file]}:{sizes[file]}" for file in chosen]] if chosen else []

            seconds = record.seconds.get(task["id"], 0) * time_scale
            tasks.append(
                {
                    "id": task["id"],
                    "stage": stage_of(task),
                    "command": [
                        "python3",
                        "-S",
                        "replay_task.py",
                        f"{seconds:.3f}",
                        *words("--read", reads),
                        *words("--write", writes),
                    ],
                    "inputs": ["replay_task.py", *[paths[file] for file in reads]],
                    "outputs": [paths[file] for file in writes],
                    "after": task.get("parents", []),
                    "runtime": seconds,
                }
            )
        return {
            "tasks": tasks,
            "files": {
                "replay_task.py": {"size": (HERE / "replay_task.py").stat().st_size},
                **{paths[file]: {"size": sizes[file]} for file in files},
            },
        }


if __name__ == "__main__":
    sys.exit(comparison.main(Replay(), __doc__))
