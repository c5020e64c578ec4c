"""Load whose every operation is remembered, so that a test can say what was lost.

A worker writes, renames, removes and verifies small and large files below one directory and logs
each operation before and after it. expected_files() folds the log: what must be there, and what
may be, since an operation that failed, or never returned, may or may not have happened.
"""

import errno
import json
import multiprocessing
import os
import random
import time

from consistency_test import get, put

ABSENT = 0
SMALL_BYTES = 1000
LARGE_BYTES = 700_000
GONE = (errno.ENOTCONN, errno.ECONNABORTED)  # What a mount answers whose server is dead.


def content(version):
    """The bytes of a version: its size and words follow from its number."""
    size = LARGE_BYTES if version % 5 == 0 else SMALL_BYTES
    word = b"version %d " % version
    return (word * (size // len(word) + 1))[:size]


class Worker:
    """A process at work in `directory`; its log is at `log_path`."""

    def __init__(self, directory, log_path, seed):
        self.directory, self.log_path, self.seed = directory, log_path, seed
        os.mkdir(directory)
        context = multiprocessing.get_context("fork")
        self.stopping = context.Event()
        self.process = context.Process(target=self._run, daemon=True)
        self.process.start()

    def stop(self, wait_s=30):
        """False if it did not end in time."""
        self.stopping.set()
        self.process.join(wait_s)
        if self.process.is_alive():
            self.process.kill()
            return False
        return True

    def _run(self):
        with open(self.log_path, "w", buffering=1) as self.log:
            chooser = random.Random(self.seed)
            names = {}
            number = 0
            while not self.stopping.is_set():
                number += 1
                if not self._step(chooser, names, number):
                    return

    def _step(self, chooser, names, number):
        """One operation; `names` are those whose content is certain. False if the mount is gone."""
        choice = chooser.random()
        if choice < 0.5 or len(names) < 4:
            name, version = f"f{number}", self.seed * 1_000_000 + number
            if choice < 0.1 and names:
                name = chooser.choice(sorted(names))
            operation = ["put", name, version]
        elif choice < 0.7:
            operation = ["rename", chooser.choice(sorted(names)), f"r{number}"]
            if choice < 0.55:
                operation[2] = chooser.choice(sorted(set(names) - {operation[1]}))
        elif choice < 0.8:
            operation = ["unlink", chooser.choice(sorted(names))]
        else:
            operation = ["verify", chooser.choice(sorted(names))]
        return self._do(operation, names)

    def _do(self, operation, names):
        begin = time.monotonic()
        self.log.write(json.dumps(["begin", begin, *operation]) + "\n")
        kind, path = operation[0], f"{self.directory}/{operation[1]}"
        touched = [name for name in operation[1:] if isinstance(name, str)]
        outcome = "ok"
        before = {name: names.get(name) for name in touched}
        if kind != "verify":
            for name in touched:
                names.pop(name, None)
        try:
            if kind == "put":
                put(path, content(operation[2]))
                names[operation[1]] = operation[2]
            elif kind == "rename":
                os.rename(path, f"{self.directory}/{operation[2]}")
                names[operation[2]] = before[operation[1]]
            elif kind == "unlink":
                os.unlink(path)
            elif get(path) != content(before[operation[1]]):
                outcome = "wrong"
        except OSError as error:
            outcome = errno.errorcode.get(error.errno, str(error.errno))
            time.sleep(0.02)
        self.log.write(json.dumps(["end", time.monotonic() - begin, outcome]) + "\n")
        return outcome not in [errno.errorcode[number] for number in GONE]


class Outcome:
    """What a worker's log says."""

    def __init__(self, log_path):
        self.acknowledged = 0
        self.failed = {}
        self.wrong = 0
        self.longest_s = 0.0
        self.expected = {}  # Name -> set of versions (ABSENT is one), or None: anything.
        lines = [json.loads(line) for line in open(log_path) if line.endswith("\n")]
        for begin, end in zip(lines[::2], [*lines[1::2], None]):
            self._add(begin[2:], end)

    def _add(self, operation, end):
        # A worker that was stopped in the middle says nothing about how long it waited.
        outcome = end[2] if end else "no answer"
        self.longest_s = max(self.longest_s, end[1] if end else 0)
        if outcome == "ok":
            self.acknowledged += 1
        elif outcome == "wrong":
            self.wrong += 1
        else:
            self.failed[outcome] = self.failed.get(outcome, 0) + 1
        kind, name = operation[0], operation[1]
        if kind == "verify":
            return
        certain = outcome == "ok"
        if kind == "put":
            self.expected[name] = {operation[2]} if certain else None
        elif kind == "unlink":
            self.expected[name] = {ABSENT} if certain else None
        elif certain:
            self.expected[operation[2]] = self.expected[name]
            self.expected[name] = {ABSENT}
        else:
            self.expected[name] = self.expected[operation[2]] = None

    def losses(self, directory):
        """Acknowledged operations whose effect is not there, seen from `directory`."""
        found = []
        for name, versions in sorted(self.expected.items()):
            if versions is None:
                continue
            try:
                data = get(f"{directory}/{name}")
            except FileNotFoundError:
                data = None
            except OSError as error:
                found.append(f"{name}: {errno.errorcode[error.errno]}")
                continue
            wanted = [None if version == ABSENT else content(version) for version in versions]
            if data not in wanted:
                have = "absent" if data is None else f"{len(data)} bytes"
                found.append(f"{name}: {have}, must be version {sorted(versions)}")
        return found
