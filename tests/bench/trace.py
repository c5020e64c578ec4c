#!/usr/bin/env python3
"""What tracing costs: the same calls on the same mount, traced and not, by turns.

  tests/bench/trace.py --bin build/release/bin
  tests/bench/trace.py --bin build/release/bin --pairs 200 --output trace.json
  tests/bench/trace.py --bin build/release/bin --wrap /var/tmp

Two clusters of one host (root), one with kernel passthrough, one without. A full trace is set against its own mount
untraced on both, a light one on the one with passthrough. Slices of some ten milliseconds follow each other, traced and
not, in pairs whose order changes; a ratio is of the two slices of a pair. Shown are the median of all pairs and the
interval in which the true median lies with 95 % (by order statistics, so that neighbours who take the processor for a
while do not count), of wall time, and of the CPU time of this program and the mount together. What a full trace costs on
a mount with passthrough is passthrough itself. With --wrap DIR, instead: a directory made there under `mosa trace wrap`
against itself; there the FUSE mount is part of the cost. Exit code 1 if an interval of wall time lies wholly above its goal
(0 with --no-gate): 3 % for a full trace without passthrough, 1 % for a light one.
"""

import argparse
import contextlib
import json
import math
import mmap
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from cluster import Cluster, placed_directory, wait_until, why_not  # noqa: E402

MIB = 1 << 20
FILE_BYTES = 32 * MIB
ATTRIBUTE = "user.mosa.trace"
GOALS = {("full", "off"): 1.03, ("light", "on"): 1.01}


def median_interval(values):
    """The median, and the order statistics between which the true one lies with 95 %."""
    ordered = sorted(values)
    n = len(ordered)
    if n < 6:  # All of them together hold it with less than 95 %.
        return statistics.median(ordered), 0.0, math.inf
    half = 1.96 * math.sqrt(n) / 2
    low, high = max(0, math.floor(n / 2 - half)), min(n - 1, math.ceil(n / 2 + half))
    return statistics.median(ordered), ordered[low], ordered[high]


class Calls:
    """What a slice does, below a directory of the mount."""

    def __init__(self, directory):
        self.directory = directory
        self.big = f"{directory}/big"
        self.small = f"{directory}/small"
        self.page = mmap.mmap(-1, MIB)  # Aligned, for O_DIRECT.
        self.page.write(os.urandom(MIB))
        for path, size in ((self.big, FILE_BYTES), (self.small, 4096)):
            with open(path, "wb", buffering=0) as file:
                for _ in range(max(1, size // MIB)):
                    file.write(self.page[:min(size, MIB)])

    def _each(self, flags, block, count, call):
        descriptor = os.open(self.big, flags)
        with memoryview(self.page) as whole, whole[:block] as part:
            for i in range(count):
                call(descriptor, [part], i * block % FILE_BYTES)
        os.close(descriptor)

    def read_1m(self):
        self._each(os.O_RDONLY | os.O_DIRECT, MIB, 64, os.preadv)

    def read_4k(self):
        self._each(os.O_RDONLY | os.O_DIRECT, 4096, 500, os.preadv)

    def cached_read(self):
        """As programs read: by passthrough, or through the kernel's read-ahead into its pages."""
        self._each(os.O_RDONLY, 65536, 512, os.preadv)

    def write_1m(self):
        self._each(os.O_WRONLY, MIB, 32, os.pwritev)

    def write_4k(self):
        self._each(os.O_WRONLY, 4096, 500, os.pwritev)

    def open_close(self):
        for _ in range(200):
            os.close(os.open(self.small, os.O_RDONLY))

    def make_unlink(self):
        for i in range(60):
            descriptor = os.open(f"{self.directory}/n{i}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.write(descriptor, self.page[:1000])
            os.close(descriptor)
        for i in range(60):
            os.unlink(f"{self.directory}/n{i}")

    def processes(self):
        """A process for each open: the trace asks after every one of them."""
        for _ in range(8):
            subprocess.run(["/bin/cat", self.small], stdout=subprocess.DEVNULL, check=True)

    def all(self):
        return [self.read_1m, self.read_4k, self.cached_read, self.write_1m, self.write_4k, self.open_close,
                self.make_unlink, self.processes]


def timed(call, server=None):
    """Wall seconds of a call, and CPU seconds of it, its children and the process `server`."""
    clock = ~server << 3 | 2 if server else None  # CPU time of that process.

    def cpu():
        own = time.process_time() + sum(os.times()[2:4])
        return own + time.clock_gettime(clock) if clock else own

    begin = time.perf_counter(), cpu()
    call()
    return time.perf_counter() - begin[0], cpu() - begin[1]


def ended(mount):
    """What is said of a mount's last trace when all of it is written; None before."""
    status = json.loads(os.getxattr(mount, ATTRIBUTE))
    return None if status["ending"] else status


class Bench:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.dropped = 0

    def slice(self, store, call, level):
        """Wall and CPU seconds of one slice."""
        mount = store.mount("h1")
        if level:
            os.setxattr(mount, ATTRIBUTE, f"{level} {self.directory}".encode())
        wall, cpu = timed(call, store.pid("mount", "h1"))
        if level:
            os.setxattr(mount, ATTRIBUTE, b"stop")
            status = wait_until(lambda: ended(mount), 30, "the end of a trace")
            self.dropped += status["dropped"]
            with contextlib.suppress(FileNotFoundError):
                os.unlink(status["file"])
        return wall, cpu

    def measure(self):
        """By trace, passthrough and call: a list of the ratios (wall, CPU) of pairs."""
        ratios = {}
        for passthrough, flags, levels in (("off", ["--no-passthrough"], ["full"]), ("on", [], ["light", "full"])):
            with Cluster(self.arguments.bin, 1, ram="512M", flags=flags) as store:
                calls = Calls(placed_directory(f"{store.mount('h1')}/bench", "local"))
                for call in calls.all():
                    call()  # Warm.
                end = time.monotonic() + self.arguments.limit / 2
                for pair in range(self.arguments.pairs):
                    if time.monotonic() > end:
                        break
                    for call in calls.all():
                        for level in levels:
                            order = [level, None] if pair % 2 else [None, level]
                            taken = {way: self.slice(store, call, way) for way in order}
                            ratio = [new / max(old, 1e-6) for new, old in zip(taken[level], taken[None])]
                            ratios.setdefault((level, passthrough, call.__name__), []).append(ratio)
        return ratios

    def measure_wrapped(self, place):
        """By call: a list of the wall seconds of pairs, of a directory in `place` itself and by its wrapper."""
        seconds = {}
        with tempfile.TemporaryDirectory(dir=place) as real, tempfile.TemporaryDirectory() as mount:
            trace = f"{self.directory}/wrap.trace"
            words = [f"{self.arguments.bin}/mosa", "--json", "trace", "wrap", real, mount, "-o", trace]
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as wrapper:
                if not wrapper.stderr.readline().startswith("Tracing"):
                    raise SystemExit("the wrapper does not begin")
                plain, wrapped = Calls(real).all(), Calls(mount).all()
                end = time.monotonic() + self.arguments.limit
                for pair in range(-1, self.arguments.pairs):
                    if time.monotonic() > end:
                        break
                    for one, other in zip(plain, wrapped):
                        order = [(one, None), (other, wrapper.pid)]
                        taken = {way: timed(*way)[0] for way in (order if pair % 2 else order[::-1])}
                        if pair >= 0:  # The first is to warm.
                            seconds.setdefault(one.__name__, []).append([taken[way] for way in order])
                wrapper.terminate()
                self.dropped += json.loads(wrapper.communicate(timeout=60)[0])["dropped"]
        return seconds


def print_wrapped(seconds):
    print("| calls | pairs | directory, ms | wrapped, ms | ratio | 95 % |\n|---|---|---|---|---|---|")
    for call, pairs in seconds.items():
        plain, wrapped = (statistics.median(pair[k] for pair in pairs) * 1e3 for k in (0, 1))
        ratio = median_interval([pair[1] / max(pair[0], 1e-9) for pair in pairs])
        print(f"| {call} | {len(pairs)} | {plain:.2f} | {wrapped:.2f} | {ratio[0]:.2f} | {ratio[1]:.2f} to {ratio[2]:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the directory of mosa and its daemons")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--limit", type=int, default=600, help="seconds for all; fewer pairs then")
    parser.add_argument("--wrap", metavar="DIR", help="measure `mosa trace wrap` of a directory there instead")
    parser.add_argument("-o", "--output", dest="out", help="write all ratios as JSON here")
    parser.add_argument("--no-gate", action="store_true")
    arguments = parser.parse_args()
    if not arguments.wrap and why_not():
        raise SystemExit(f"cannot measure: {why_not()}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        bench = Bench(arguments, directory)
        measured = bench.measure_wrapped(arguments.wrap) if arguments.wrap else bench.measure()
    print(f"Linux {platform.release()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; records dropped: "
          f"{bench.dropped}\n")
    if arguments.wrap:
        print_wrapped(measured)
        return
    print("| trace | passthrough | calls | pairs | wall | 95 % | CPU | 95 % |\n|---|---|---|---|---|---|---|---|")
    rows = []
    for level, passthrough in dict.fromkeys(key[:2] for key in measured):
        together = []
        for key in [k for k in measured if k[:2] == (level, passthrough)]:
            rows.append((*key, measured[key]))
            together.append(measured[key])
        # The mean over the calls of every pair: each counts alike.
        rows.append((level, passthrough, "all", [
            [math.exp(statistics.fmean(math.log(one[k]) for one in pair)) for k in (0, 1)] for pair in zip(*together)]))
    missed = []
    for level, passthrough, call, pairs in rows:
        wall, cpu = (median_interval([pair[k] for pair in pairs]) for k in (0, 1))
        goal = GOALS.get((level, passthrough))
        if call == "all" and goal and wall[1] > goal:
            missed.append(f"{level} with passthrough {passthrough}: {wall[0]:.3f}, goal {goal}")
        print(f"| {level} | {passthrough} | {call} | {len(pairs)} | {wall[0]:.3f} | {wall[1]:.3f} to {wall[2]:.3f} | "
              f"{cpu[0]:.3f} | {cpu[1]:.3f} to {cpu[2]:.3f} |")
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(rows, indent=1))
    for each in missed:
        print(f"\nabove its goal: {each}")
    sys.exit(1 if missed and not arguments.no_gate else 0)


if __name__ == "__main__":
    main()
