"""What it costs that the manager syncs each change: small files per second, with and without --fsync.

Each client is a mount of its own; each program makes files of 1 KiB in a directory of its own (one
change per file: make and close travel together). Runs with and without sync take turns, so that what
else the machine does meets both. Prints one row per number of clients; rates are medians.

    python3 sync_cost.py --bin build/release/bin --dir /var/tmp/sync-cost
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import threading
import time


def wait_for(path, seconds=30):
    limit = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > limit:
            raise SystemExit(f"{path}: not there after {seconds} s")
        time.sleep(0.01)


class Store:
    """A manager on a fresh directory and some mounts."""

    def __init__(self, binaries, directory, clients, synced):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        self.directory = directory
        self.children = []
        self.mounts = [directory / f"m{i}" for i in range(clients)]
        ready = directory / "manager.json"
        self._start(
            [binaries / "mosa-manager", "--data-dir", directory / "data", "--listen", "127.0.0.1:7988"]
            + ["--ready-file", ready] + (["--fsync"] if synced else [])
        )
        wait_for(ready)
        for mount in self.mounts:
            mount.mkdir()
            self._start([binaries / "mosa-mount", mount, "--manager", "127.0.0.1:7988"])
        for mount in self.mounts:
            limit = time.monotonic() + 30
            while not os.path.ismount(mount):
                if time.monotonic() > limit:
                    raise SystemExit(f"{mount} was not mounted")
                time.sleep(0.01)

    def _start(self, command):
        with open(self.directory / "log", "ab") as log:
            self.children.append(subprocess.Popen([str(c) for c in command], stdout=log, stderr=log))

    def close(self):
        for child in reversed(self.children):
            child.terminate()
        for child in self.children:
            child.wait(timeout=30)
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], capture_output=True)


def make_files(mount, until, result):
    directory = mount / f"d{os.path.basename(mount)}"
    directory.mkdir()
    data = b"x" * 1024
    slowest = 0.0
    count = 0
    while time.monotonic() < until:
        begin = time.monotonic()
        fd = os.open(directory / str(count), os.O_CREAT | os.O_WRONLY, 0o644)
        os.write(fd, data)
        os.close(fd)
        slowest = max(slowest, time.monotonic() - begin)
        count += 1
    result.append((count, slowest))


def measure(binaries, directory, clients, synced, seconds):
    store = Store(binaries, directory, clients, synced)
    with contextlib.closing(store):
        result = []
        until = time.monotonic() + seconds
        threads = [
            threading.Thread(target=make_files, args=(mount, until, result)) for mount in store.mounts
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(count for count, _ in result) / seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("clients  files/s without sync  with sync  ratio")
    for clients in options.clients:
        rates = {False: [], True: []}
        for _ in range(options.rounds):
            for synced in rates:
                rates[synced].append(
                    measure(options.bin, options.dir, clients, synced, options.seconds)
                )
        plain, synced = (statistics.median(rates[key]) for key in (False, True))
        print(f"{clients:7}  {plain:20.0f}  {synced:9.0f}  {synced / plain:5.2f}", flush=True)


if __name__ == "__main__":
    main()
