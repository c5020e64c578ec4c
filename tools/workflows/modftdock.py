#!/usr/bin/env python3
"""A workflow of modFTDock's shape over a Mosa cluster on this machine; every byte is checked by
every task that reads it.
 Protein docking as in the Workflow-Aware talk, with its patterns and sizes of files (100 KB to 75 MB): all dock
tasks read one large file (broadcast); a merge task gathers what the dock tasks of its molecule have
written (reduce); a score task reads what a merge task has written (pipeline). The bytes are made
up; how they move is the application's.

    tools/workflows/modftdock.py --mosa build/release/bin/mosa --rate 200mbit
    tools/workflows/modftdock.py --mosa build/release/bin/mosa --molecules 2 --docks 4 --scale 0.02

Exit code 0 only if everything is right.
"""

import pathlib
import random
import shutil
import sys

import comparison

HERE = pathlib.Path(__file__).resolve().parent
SMALLEST, LARGEST = 100_000, 75_000_000


class ModFtDock(comparison.Application):
    name = "modftdock"

    def add_arguments(self, parser):
        parser.add_argument(
            "--molecules", type=int, default=4, help="each with one merge and one score task"
        )
        parser.add_argument("--docks", type=int, default=12, help="tasks per molecule")
        parser.add_argument("--scale", type=float, default=1.0, help="of all sizes")
        parser.add_argument("--seconds", type=float, default=0.1, help="of computing in each task")

    def check(self, arguments):
        if not (1 <= arguments.molecules <= 1000 and 2 <= arguments.docks <= 1000):
            raise comparison.Failed(
                "--molecules must be between 1 and 1,000, and --docks between 2 and 1,000"
            )
        if not 0 < arguments.scale <= 10:
            raise comparison.Failed(f"--scale {arguments.scale} is not between 0 and 10")

    def prepare(self, arguments, inputs):
        shutil.copy(HERE / "modftdock_task.py", inputs)
        self.seconds = arguments.seconds
        self.sizes = {}
        rng = random.Random("modftdock")
        smallest, largest = (max(1, round(arguments.scale * size)) for size in (SMALLEST, LARGEST))
        tasks = [self.task("protein", "0", [], {"protein.db": largest})]
        for molecule in range(arguments.molecules):
            docked = []
            ligand = f"ligands/{molecule}"
            tasks.append(self.task("ligand", f"{molecule}", [], {ligand: smallest}))
            for dock in range(arguments.docks):
                # From the smallest to the size at which all of a molecule make the largest file.
                size = rng.randint(
                    smallest, max(smallest, 2 * largest // arguments.docks - smallest)
                )
                docked.append(f"docked/{molecule}-{dock}")
                tasks.append(
                    self.task(
                        "dock", f"{molecule}-{dock}", ["protein.db", ligand], {docked[-1]: size}
                    )
                )
            merged = f"merged/{molecule}"
            together = min(largest, sum(self.sizes[name] for name in docked))
            tasks.append(self.task("merge", f"{molecule}", docked, {merged: together}))
            tasks.append(
                self.task("score", f"{molecule}", [merged], {f"scores/{molecule}": smallest})
            )
        files = {path: {"size": size} for path, size in self.sizes.items()}
        return {"tasks": tasks, "files": files}

    def task(self, stage, name, reads, writes):
        self.sizes.update(writes)
        words = ["python3", "modftdock_task.py", "--seconds", str(self.seconds)]
        words += ["--write", *[f"{path}:{size}" for path, size in writes.items()]]
        if reads:
            words += ["--read", *[f"{path}:{self.sizes[path]}" for path in reads]]
        return {
            "id": f"{stage}-{name}",
            "stage": stage,
            "command": words,
            "inputs": ["modftdock_task.py", *reads],
            "outputs": list(writes),
        }


if __name__ == "__main__":
    sys.exit(comparison.main(ModFtDock(), __doc__))
