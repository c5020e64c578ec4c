#!/usr/bin/env python3
"""A workflow whose time goes into metadata, over a Mosa cluster on this machine: checked byte for byte against a local disk.

Tasks of the first stage make many files of a few hundred bytes each; each task of the second opens what one of the first has
made, and all of them one common file; the last one opens everything.

    tools/workflows/manysmall.py --mosa build/release/bin/mosa --rate 200mbit
    tools/workflows/manysmall.py --mosa build/release/bin/mosa --write manysmall/

Exit code 0 only if everything is equal.
"""

import sys

import comparison

COMMON = "common.txt"


class ManySmall(comparison.Application):
    name = "manysmall"
    ram = "256M"

    def add_arguments(self, parser):
        parser.add_argument("--tasks", type=int, default=16, help="of each of the first two stages")
        parser.add_argument("--files", type=int, default=100, help="that a task of the first stage makes")
        parser.add_argument("--bytes", type=int, default=300, help="of each of them")

    def check(self, arguments):
        if min(arguments.tasks, arguments.files, arguments.bytes) < 1:
            raise comparison.Failed("--tasks, --files and --bytes must be 1 at least")
        least = len(str(arguments.tasks - 1)) + 1
        if arguments.bytes < least:
            raise comparison.Failed(f"--bytes {arguments.bytes}: each file has its task's number and a newline, {least} bytes of {arguments.tasks} tasks")

    def prepare(self, arguments, inputs):
        (inputs / COMMON).write_text("x" * arguments.bytes, encoding="ascii")
        tasks, everything = [], []
        for number in range(arguments.tasks):
            made = [f"made/{number:03}/{file:04}" for file in range(arguments.files)]
            everything += made
            line = f"{number:0{arguments.bytes - 1}}"
            tasks.append({"id": f"make-{number:03}", "stage": "make", "inputs": [COMMON], "outputs": made,
                          "command": f"cat {COMMON} > /dev/null; for file in $(seq -f %04g 0 {arguments.files - 1}); do "
                                     f"echo {line} > made/{number:03}/$file; done"})
            tasks.append({"id": f"use-{number:03}", "stage": "use", "inputs": [COMMON, *made], "outputs": [f"sums/{number:03}"],
                          "command": f"cat {COMMON} made/{number:03}/* | cksum > sums/{number:03}"})
        tasks.append({"id": "merge", "stage": "merge", "inputs": everything, "outputs": ["all"],
                      "command": "cat made/*/* > all"})
        return {"tasks": tasks}


if __name__ == "__main__":
    sys.exit(comparison.main(ManySmall(), __doc__))
