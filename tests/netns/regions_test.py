"""Tasks on every mount write and read disjoint regions of one file at the same time.

Four hosts. Regions are as large as chunks, and of sizes that make neighbours share chunks and pages.
Every byte is verified; what each mount has sent, and how often others disturbed it, is counted.
"""

import contextlib
import json
import multiprocessing
import os
import random
import time

import cluster

KIB, MIB = 1 << 10, 1 << 20
CHUNK = 256 * KIB
REGIONS_PER_TASK = 6
ROUNDS = 2
# Where the file goes: chunk by chunk, in runs of chunks, by pattern, and to one node, where the
# task of that host writes through its kernel.
LAYOUTS = (
    {"placement": "scatter:1", "chunk_size": str(CHUNK)},
    {"placement": "scatter:3", "chunk_size": str(CHUNK)},
    {"pattern": f"gather:{CHUNK}"},
    {"placement": "node:h1"},
)
SIZES = (CHUNK, 3 * CHUNK, CHUNK // 2, CHUNK - 4096, 100_003)
WRITE_BYTES = 61_440 + 7  # No power of two: pieces end anywhere.


def content(round_number, region, size):
    return random.Random(f"{round_number}.{region}").randbytes(size)


def counters(mount):
    return json.loads(os.getxattr(mount, "user.mosa.mount"))


def sent(facts):
    """Bytes that a mount has stored anywhere."""
    return sum(facts[f"bytes_written_{how}"] for how in ("local", "remote", "inline"))


def write_regions(path, round_number, regions, size, barrier):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        barrier.wait(30)
        for region in regions:
            data = memoryview(content(round_number, region, size))
            for begin in range(0, size, WRITE_BYTES):
                piece = data[begin : begin + WRITE_BYTES]
                written = os.pwrite(descriptor, piece, region * size + begin)
                cluster.check(written == len(piece), f"{written} of {len(piece)} bytes written")
            if region % 3 == 0:
                os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_regions(path, round_number, regions, size, barrier):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        barrier.wait(30)
        for region in regions:
            have = os.pread(descriptor, size, region * size)
            while len(have) < size:
                more = os.pread(descriptor, size - len(have), region * size + len(have))
                cluster.check(more, f"{path} ends in region {region}")
                have += more
            check_region(path, round_number, region, size, have)
    finally:
        os.close(descriptor)


def check_region(path, round_number, region, size, have):
    wanted = content(round_number, region, size)
    if have == wanted:
        return
    at = next(i for i in range(size) if have[i : i + 1] != wanted[i : i + 1])
    raise cluster.Failed(
        f"{path}: round {round_number}, region {region} of {size} bytes is wrong from byte {at}"
    )


def attempt(results, action, *words):
    try:
        action(*words)
        results.put(None)
    except Exception as failure:  # noqa: BLE001 - it is told by the parent.
        results.put(f"{action.__name__}: {failure!r}")


def at_once(action, works):
    """Runs action(*work, barrier) in a process for each of `works`."""
    forked = multiprocessing.get_context("fork")
    barrier, results = forked.Barrier(len(works)), forked.Queue()
    children = [
        forked.Process(target=attempt, args=(results, action, *work, barrier)) for work in works
    ]
    for child in children:
        child.start()
    failures = [results.get(timeout=60) for _ in children]
    for child in children:
        child.join(10)
    failures = [failure for failure in failures if failure]
    cluster.check(not failures, "; ".join(failures))


def check_counters(mounts, before, share, may_pass, what):
    """Each mount has sent its own bytes once, read nothing for it, and was hardly disturbed.

    `may_pass`: the kernel of the first mount may have written its share by itself.
    """
    recalls = []
    for number, mount in enumerate(mounts):
        after = counters(mount)
        have = sent(after) - sent(before[number])
        once = have == share or (may_pass and number == 0 and have == 0)
        cluster.check(once, f"{what}: mount {number} sent {have} bytes for {share}")
        for how in ("local", "remote", "inline"):
            name = f"bytes_read_{how}"
            cluster.check(after[name] == before[number][name], f"{what}: it read while it wrote")
        recalls.append(after["recalls"] - before[number]["recalls"])
    # One for each commit of the others: at close, and where they asked for it by fsync.
    commits = len(mounts) * (1 + REGIONS_PER_TASK)
    cluster.check(max(recalls) <= commits, f"{what}: {recalls} recalls for {commits} commits")
    return recalls


def check_case(mounts, name, layout, size):
    tasks = len(mounts)
    regions = tasks * REGIONS_PER_TASK
    what = f"{layout} by regions of {size}"
    one_node = layout.get("placement") == "node:h1"
    paths = [f"{mount}/{name}" for mount in mounts]
    with open(paths[-1], "wb"):
        for hint, value in layout.items():
            cluster.set_hint(paths[-1], hint, value)
    for round_number in range(ROUNDS):
        begun = time.time()
        before = [counters(mount) for mount in mounts]
        works = [
            (paths[task], round_number, range(task, regions, tasks), size)
            for task in range(tasks)
        ]
        at_once(write_regions, works)
        recalls = check_counters(mounts, before, REGIONS_PER_TASK * size, one_node, what)
        for path in paths:
            facts = os.stat(path)
            cluster.check(facts.st_size == regions * size, f"{what}: {facts.st_size} bytes long")
            cluster.check(facts.st_mtime >= begun - 0.5, f"{what}: older than what it holds")
        # Everybody reads what others have written; one reads all.
        works = [
            (paths[task], round_number, range((task + 1 + round_number) % tasks, regions, tasks),
             size)
            for task in range(tasks)
        ]
        at_once(read_regions, works)
        read_regions(paths[round_number], round_number, range(regions), size, OneAlone())
    where = os.getxattr(paths[0], "user.mosa.location").decode().split(",")
    wanted = 1 if one_node else tasks
    cluster.check(len(where) == wanted, f"{what}: lies on {where}")
    print(f"{what}: right twice; recalls by mount {recalls}", flush=True)
    os.unlink(paths[0])


class OneAlone:
    def wait(self, _):
        """There is nobody to wait for."""


def test(arguments):
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(cluster.Cluster(arguments.bin, 4, ram="256M"))
        mounts = [store.mount(host) for host in store.hosts]
        for number, layout in enumerate(LAYOUTS):
            for size in SIZES:
                check_case(mounts, f"f{number}.{size}", layout, size)


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
