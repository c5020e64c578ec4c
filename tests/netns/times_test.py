"""Outputs are never older than their inputs, on hosts whose clocks differ by minutes.

make and Snakemake decide by mtime. A file is made on one mount, read on the other, and what is made
of it there must not have an earlier mtime, seen from either mount; in both directions, for small,
striped and local files, with the storage node and the mount of h2 two minutes off.
"""

import os
import time

import cluster
from consistency_test import get, put

SIZES = (10, 100_000, 1_500_000)
SKEWS_S = (0, 120, -120)
SLACK_S = 2.0


def restart_skewed(store, library, skew_s):
    environment = {"LD_PRELOAD": library, "MOSA_TEST_SKEW_S": str(skew_s)}
    for kind in ("storage", "mount"):
        command = store.kill(kind, "h2")
        store.start(kind, "h2", command, environment=environment)
    # A node of which the manager had not yet noticed the end would take no files.
    path = f"{store.mount('h2')}/ready"
    cluster.wait_until(lambda: tried(path), 20, "h2 is part of the cluster again")


def tried(path):
    try:
        put(path, bytes(2_000_000))
        return len(get(path)) == 2_000_000
    except OSError:
        return False


def make(source, target):
    """What a task does: read the input, write the output."""
    data = get(source)
    put(target, data[::-1])


def check_rounds(store, folder, rounds, skew_s):
    mounts = [store.mount(host) for host in ("h1", "h2")]
    for number in range(rounds):
        here, there = mounts if number % 2 == 0 else mounts[::-1]
        size = SIZES[number % len(SIZES)]
        source, target = f"{folder}/in{number}", f"{folder}/out{number}"
        begin = time.time()
        put(f"{here}/{source}", bytes(size))
        if number % 7 == 0:
            os.utime(f"{here}/{source}")  # touch
        make(f"{there}/{source}", f"{there}/{target}")
        end = time.time()
        for mount in mounts:
            older = os.stat(f"{mount}/{source}").st_mtime_ns
            newer = os.stat(f"{mount}/{target}").st_mtime_ns
            what = f"skew {skew_s} s, {folder}, {size} bytes, round {number}, seen on {mount}"
            cluster.check(newer >= older, f"{what}: output older by {(older - newer) / 1e6:.3f} ms")
            for name, stamp in (("input", older), ("output", newer)):
                true = begin - SLACK_S <= stamp / 1e9 <= end + SLACK_S
                off = stamp / 1e9 - end
                cluster.check(true, f"{what}: the {name}'s mtime is {off:.1f} s off")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store:
        for skew_s in SKEWS_S:
            if skew_s:
                restart_skewed(store, arguments.skewed_clock, skew_s)
            for placement in ("stripe", "local"):
                folder = f"{placement}{skew_s}"
                cluster.placed_directory(f"{store.mount('h1')}/{folder}", placement)
                check_rounds(store, folder, arguments.rounds, skew_s)
            print(f"skew {skew_s} s: {2 * arguments.rounds} outputs, none older", flush=True)


def add_arguments(parser):
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--skewed-clock", required=True, help="the library to preload")


if __name__ == "__main__":
    cluster.main(test, description=__doc__, add_arguments=add_arguments)
