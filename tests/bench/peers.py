#!/usr/bin/env python3
"""Mosa beside MooseFS and GlusterFS: small files, one directory shared by several hosts, and a host that reads what it wrote.

  tests/bench/peers.py --bin build/release/bin
  tests/bench/peers.py --bin build/release/bin --peers moosefs --repeats 3

Each peer runs on the hosts of a Mosa cluster of its own, both with a mount on every host, and every row is measured on one after
the other, in turns. Needs root; a peer whose packages are missing is left out, and said. Figures are medians over --repeats with
the least and the largest; the ratio is the median of the repeats' ratios. Exit code 1 if a target was not reached.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from cluster import Failed, check, print_table, why_not  # noqa: E402
from peer_stores import Gluster, MooseFs  # noqa: E402

PEERS = {"moosefs": MooseFs, "glusterfs": Gluster}
HOSTS = 4
KEPT_FILES, KEPT_BYTES = 40, 1_200_000


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    what: str
    mounts: int
    phase: str  # Of mount_bench; earlier phases of its batch come before.
    together: bool = False
    target: float = 1.5  # Of Mosa's rate to the peer's.


ROWS = [
    Row("create", "create + write 1 KiB + close, one mount", 1, "create-small"),
    Row("stat", "stat, one mount", 1, "stat"),
    Row("open", "open + close, one mount", 1, "open"),
    Row("unlink", "unlink, one mount", 1, "unlink"),
    Row("create-shared-2", "create + write 1 KiB + close, two mounts in one directory", 2, "create-small", True),
    Row("create-shared-4", "create + write 1 KiB + close, four mounts in one directory", 4, "create-small", True),
    Row("create-own-4", "create + write 1 KiB + close, four mounts in own directories", 4, "create-small"),
]


class Bench:
    def __init__(self, arguments):
        self.binaries = pathlib.Path(arguments.bin).resolve()
        self.program = arguments.mount_bench or self.binaries.parent / "tests" / "bench" / "mount_bench"
        check(pathlib.Path(self.program).exists(), f"no {self.program}: build it, or name it by --mount-bench")
        self.files = arguments.files
        self.repeats = arguments.repeats
        self.rates = {}  # (row, store): a rate for each repeat.
        self.batches = 0

    def batch(self, store, paths, phases, together):
        """Rates by phase. Files are new ones each time."""
        self.batches += 1
        command = [self.program, *paths, "--phases", ",".join(phases), "--files", self.files, "--name", f"b{self.batches}"]
        done = subprocess.run([*map(str, command), *(["--together"] if together else [])], capture_output=True, text=True,
                              timeout=900, check=False)
        check(done.returncode == 0, f"mount_bench on {store}: {done.stderr.strip()}")
        return {phase["phase"]: phase["per_s"] for phase in json.loads(done.stdout)["phases"]}

    def measure(self, store, mounts):
        for count, together in sorted({(row.mounts, row.together) for row in ROWS}):
            rows = [row for row in ROWS if (row.mounts, row.together) == (count, together)]
            rates = self.batch(store, mounts[:count], [row.phase for row in rows], together)
            for row in rows:
                self.rates.setdefault((row.name, store), []).append(rates[row.phase])

    def run(self, peer):
        with PEERS[peer](self.binaries, HOSTS, rate=None, ram="1G") as both:
            stores = {f"mosa beside {peer}": [both.mount(host) for host in both.hosts],
                      peer: [both.mount_of(host) for host in both.hosts]}
            for repeat in range(self.repeats):
                order = list(stores.items())[:: -1 if repeat % 2 else 1]
                for store, mounts in order:
                    self.measure(store, mounts)
                    print(f"  {peer}: {repeat + 1} of {self.repeats}, {store}", file=sys.stderr, flush=True)
            self.kept = {store: read_back(both, mounts[0], peer) for store, mounts in stores.items()}


def received_bytes(store, host):
    text = store.exec(host, "cat", "/proc/net/dev").stdout
    return sum(int(line.split(":")[1].split()[0]) for line in text.splitlines() if ":" in line and "lo:" not in line)


def read_back(store, mount, name):
    """A host writes 48 MB in 40 files without hints and reads them: seconds, and bytes that reached it meanwhile."""
    directory = pathlib.Path(mount) / f"kept-{name}"
    directory.mkdir()
    content = os.urandom(KEPT_BYTES)
    for i in range(KEPT_FILES):
        (directory / f"f{i}").write_bytes(content)
    host = store.hosts[0]
    before, begin = received_bytes(store, host), time.monotonic()
    for i in range(KEPT_FILES):
        check((directory / f"f{i}").read_bytes() == content, f"{directory}/f{i} reads otherwise than it was written")
    return time.monotonic() - begin, received_bytes(store, host) - before


def spread(values):
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


def table_of(bench, peer):
    rows, reached = [], True
    for row in ROWS:
        ours, theirs = (bench.rates[row.name, store] for store in (f"mosa beside {peer}", peer))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        reached = reached and ratio >= row.target
        rows.append([row.what, spread(ours), spread(theirs), f"{ratio:.2f}", f"{row.target:.1f}",
                     "reached" if ratio >= row.target else "MISSED"])
    return rows, reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the directory of mosa and its daemons")
    parser.add_argument("--mount-bench", help="the program mount_bench, if it is not beside them")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, by commas (default: %(default)s)")
    parser.add_argument("--files", type=int, default=1500, help="per mount and row (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="of every row (default: %(default)s)")
    arguments = parser.parse_args()
    if reason := why_not():
        sys.exit(f"skipped: {reason}")
    bench, all_reached = Bench(arguments), True
    for peer in arguments.peers.split(","):
        check(peer in PEERS, f"no peer '{peer}': {', '.join(PEERS)}")
        if reason := PEERS[peer].why_not():
            print(f"{peer} left out: {reason}\n")
            continue
        bench.run(peer)
        rows, reached = table_of(bench, peer)
        all_reached = all_reached and reached
        print_table(["OPERATIONS PER SECOND", "MOSA", peer.upper(), "RATIO", "TARGET", ""], rows)
        for store, (seconds, received) in bench.kept.items():
            print(f"48 MB written in 40 files and read again on one host, {store}: {seconds:.2f} s, "
                  f"{received / 1e6:.1f} MB received")
        print(flush=True)
    sys.exit(0 if all_reached else 1)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"peers.py: {failure}")
