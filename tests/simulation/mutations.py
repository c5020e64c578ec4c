"""Does the simulation find faults? Puts one fault after the other into the store and looks.

Each row of the tables in mutations/ is a fault: a text in a product file and what replaces it. The program
changes a copy of the sources, builds the simulation there, and runs random histories of it until one
fails or the time is over. A fault that is not found shows what histories do not do or do not check.

    tests/simulation/mutations.py --copy DIR [--only TEXT] [--minutes 10] [--results FILE]

DIR gets the copy and its build, and is used again by the next run. Results are kept in a file as they
come, and faults that it has already are passed over.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = pathlib.Path(__file__).resolve().parent / "mutations"
PROGRAM = "tests/simulation/store_simulation_test"
FAILURE = re.compile(r"MOSA_SEED=(\d+) MOSA_SEEDS=1: (.*)")
HISTORIES_AT_ONCE = 100
HANGS_S = 300  # So many histories take some ten seconds.


def mutations(only):
    """All rows whose name or file has `only` in it. Raises ValueError if one does not fit the sources."""
    rows = []
    for table in sorted(TABLES.glob("*.toml")):
        rows += tomllib.loads(table.read_text())["mutation"]
    for row in rows:
        text = (ROOT / row["file"]).read_text()
        found = text.count(row["old"])
        if found != 1 or row["old"] == row["new"]:
            raise ValueError(f"{row['file']}: the text of '{row['name']}' is there {found} times, not once")
    return [row for row in rows if only in row["name"] or only in row["file"]]


def run(command, directory, log):
    with open(log, "w") as output:
        return subprocess.run(command, cwd=directory, stdout=output, stderr=output).returncode == 0


class Copy:
    """A copy of the sources, and its build."""

    def __init__(self, directory, preset):
        self.directory = pathlib.Path(directory).resolve()
        self.source = self.directory / "source"
        self.build = self.source / "build" / preset
        self.log = self.directory / "log"
        self.preset = preset

    def update(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
        for name in filter(None, tracked.stdout.decode().split("\0")):
            original, copied = ROOT / name, self.source / name
            if not original.is_file() or (copied.exists() and copied.read_bytes() == original.read_bytes()):
                continue
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(original, copied)
            shutil.copymode(original, copied)
        if not (self.build / "build.ninja").exists():
            self._make(["cmake", "--preset", self.preset])

    def compile(self):
        self._make(["cmake", "--build", str(self.build), "--target", "store_simulation_test"])

    def _make(self, command):
        if not run(command, self.source, self.log):
            raise RuntimeError(f"'{' '.join(command)}' failed: see {self.log}")


class Search:
    """Processes that run histories until one of them finds a failure."""

    def __init__(self, copy, first_seed, jobs, minutes):
        self.copy = copy
        self.next_seed = first_seed
        self.jobs = jobs
        self.limit = time.monotonic() + minutes * 60
        self.running = {}  # By the process: its log, and when it began.
        self.histories = 0

    def do(self):
        """What was found (a sentence and the seed), or None."""
        try:
            while True:
                while len(self.running) < self.jobs:
                    self._start()
                time.sleep(0.1)
                if found := self._look():
                    return found
                if time.monotonic() > self.limit:
                    return None
        finally:
            for process in self.running:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def _start(self):
        log = self.copy.directory / f"histories-{self.next_seed}.log"
        environment = {"MOSA_SEED": str(self.next_seed), "MOSA_SEEDS": str(HISTORIES_AT_ONCE)}
        with open(log, "w") as output:
            process = subprocess.Popen(
                [str(self.copy.build / PROGRAM), "--gtest_filter=*WhatWas*/1"],
                stdout=output,
                stderr=output,
                env={**os.environ, **environment},
            )
        self.running[process] = (self.next_seed, log, time.monotonic())
        self.next_seed += HISTORIES_AT_ONCE

    def _look(self):
        for process, (seed, log, begun) in list(self.running.items()):
            code = process.poll()
            if code is None and time.monotonic() - begun < HANGS_S:
                continue
            if code is None:
                return f"does not end within {HANGS_S} s", seed
            del self.running[process]
            text = log.read_text(errors="replace")
            log.unlink()
            if code == 0:
                self.histories += HISTORIES_AT_ONCE
                continue
            if failure := FAILURE.search(text):
                return failure[2], int(failure[1])
            return f"ends with {code}: {text.strip().splitlines()[-1]}", seed
        return None


def judge(copy, row, arguments):
    """One fault: put in, looked for, taken out."""
    path = copy.source / row["file"]
    original = path.read_text()
    path.write_text(original.replace(row["old"], row["new"]))
    try:
        copy.compile()
        begun = time.monotonic()
        search = Search(copy, arguments.seed, arguments.jobs, arguments.minutes)
        found = search.do()
    finally:
        path.write_text(original)
    result = {"name": row["name"], "kind": row["kind"], "seconds": round(time.monotonic() - begun, 1)}
    if found is None:
        return {**result, "found": None, "histories": search.histories}
    sentence, seed = found
    return {**result, "found": sentence, "seed": seed, "histories": seed - arguments.seed + 1}


def check_without_fault(copy, arguments):
    copy.compile()
    found = Search(copy, arguments.seed, arguments.jobs, min(1, arguments.minutes)).do()
    if found:
        raise RuntimeError(f"the sources without a fault fail: MOSA_SEED={found[1]}: {found[0]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copy", help="directory of the changed copy and its build")
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--only", default="", help="part of a fault's name or file")
    parser.add_argument("--minutes", type=float, default=10, help="for each fault")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1, help="of the first history")
    parser.add_argument("--results", help="file that keeps them (DIR/results.json)")
    parser.add_argument("--check", action="store_true", help="only whether all rows fit the sources")
    arguments = parser.parse_args()
    rows = mutations(arguments.only)
    if arguments.check:
        print(f"{len(rows)} faults fit the sources")
        return 0
    if not arguments.copy:
        parser.error("--copy is missing")

    copy = Copy(arguments.copy, arguments.preset)
    copy.update()
    results_path = pathlib.Path(arguments.results or copy.directory / "results.json")
    results = json.loads(results_path.read_text()) if results_path.exists() else []
    check_without_fault(copy, arguments)
    known = {result["name"] for result in results}
    for row in rows:
        if row["name"] not in known:
            results.append(judge(copy, row, arguments))
            results_path.write_text(json.dumps(results, indent=1))
        result = next(each for each in results if each["name"] == row["name"])
        said = f"{result['found']} (seed {result['seed']})" if result["found"] else "NOT FOUND"
        print(f"{row['name']}\n    {result['seconds']} s, {result['histories']} histories: {said}", flush=True)
    missed = [row["name"] for row in rows if not next(r for r in results if r["name"] == row["name"])["found"]]
    print(f"{len(rows) - len(missed)} of {len(rows)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
