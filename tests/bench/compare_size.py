#!/usr/bin/env python3
"""How long `mosa compare` takes for a run of many tasks: the workflow and the record of its run are made up here.

  tests/bench/compare_size.py --bin build/release/bin --tasks 10000

Half of the tasks write a file, the other half read it, on four hosts that take turns; every second host's tasks are a little
slower. Prints the seconds of three comparisons with the usual number of draws.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HOSTS = ["h1", "h2", "h3", "h4"]
PLATFORM = pathlib.Path(__file__).resolve().parent.parent / "predict" / "platform_guess.json"
FILE_BYTES = 1 << 18
BEGAN_S = 1_800_000_000
MASK = (1 << 64) - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def digest(command, inputs, outputs):
    """As that of tools/runner/record.cc, by common/base/hash.h."""
    text = "".join(f"{kind}{word}\0" for kind, words in (("c", command), ("i", sorted(inputs)), ("o", sorted(outputs))) for word in words)
    value = 0xCBF29CE484222325 ^ mix(0)
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return f"{mix(value):016x}"


def workflow(count):
    tasks, files = [], {}
    for number in range(count // 2):
        path = f"part.{number}"
        files[path] = {"size": FILE_BYTES}
        tasks.append({"id": f"make_{number}", "command": f"make {path}", "outputs": [path], "runtime": 0.2})
        tasks.append({"id": f"use_{number}", "command": f"use {path}", "inputs": [path], "runtime": 0.1})
    return {"name": "many", "tasks": tasks, "files": files}


def record(form, path):
    free = [BEGAN_S] * len(HOSTS)
    lies = {name: FILE_BYTES // len(HOSTS) for name in HOSTS}
    done = []
    for number, task in enumerate(form["tasks"]):
        at = number % len(HOSTS)
        start, took = free[at] + 0.002, task["runtime"] * (1.03 if at % 2 else 1.0) + 0.05
        free[at] = start + took
        command = ["bash", "-c", "set -euo pipefail; " + task["command"]]
        entry = {"id": task["id"], "stage": task["id"].partition("_")[0], "command": command, "host": HOSTS[at],
                 "digest": digest(command, task.get("inputs", []), task.get("outputs", [])), "state": "done", "exit_code": 0, "start": start, "end": free[at],
                 "attempts": [{"host": HOSTS[at], "start": start, "end": free[at], "exit_code": 0}]}
        for side in ("inputs", "outputs"):
            entry[side] = [{"path": each, "size_bytes": FILE_BYTES, "nodes": lies} for each in task.get(side, [])]
        done.append(entry)
    return {"version": 1, "outcome": "done", "system": "dss", "start": BEGAN_S, "end": max(free), "turnaround_seconds": max(free) - BEGAN_S,
            "hosts": [{"name": name, "slots": 1, "mount": "/", "link_bytes_per_second": 0} for name in HOSTS], "hosts_lost": [],
            "workflow": {"name": form["name"], "path": str(path)}, "tasks": done}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--tasks", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path, run = pathlib.Path(scratch) / "many.json", pathlib.Path(scratch) / "run.json"
        form = workflow(arguments.tasks)
        path.write_text(json.dumps(form), encoding="utf-8")
        run.write_text(json.dumps(record(form, path)), encoding="utf-8")
        for _ in range(3):
            began = time.monotonic()
            done = subprocess.run([arguments.bin / "mosa", "--json", "compare", "--platform", PLATFORM, "--config", "manager=apart", "--run", run],
                                  capture_output=True, text=True, check=False)
            took = time.monotonic() - began
            if done.returncode not in (0, 7):
                sys.exit(done.stderr)
            answer = json.loads(done.stdout)
            print(f"{arguments.tasks} tasks, {answer['draws']} draws, {len(answer['cells'])} cells: {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
