"""A store that is full: ENOSPC at write, nothing acknowledged lost, room back at once, df true.

Two hosts of 64 MiB each. A file for one node that does not fit there goes on at the other.
"""

import errno
import os
import time

import cluster
from consistency_test import get, put

MIB = 1 << 20
RAM = 64 * MIB
FILE_BYTES = 4 * MIB
USABLE_MIN = 0.8  # The rest may be granted to mounts, or be the nodes' own.
BACK_S = 5.0  # Much less when the machine is not busy.


def block(number, offset):
    word = b"%d@%d " % (number, offset)
    return (word * (MIB // len(word) + 1))[:MIB]


def fill(directory):
    """Writes files until one write fails. Returns ({number: bytes acknowledged}, the error)."""
    written = {}
    for number in range(2 * RAM // FILE_BYTES + 2):
        descriptor = os.open(f"{directory}/fill{number}", os.O_CREAT | os.O_WRONLY)
        refusal, done = None, 0
        try:
            while done < FILE_BYTES and refusal is None:
                try:
                    done += os.write(descriptor, block(number, done))
                except OSError as error:
                    refusal = ("write", error.errno)
        finally:
            try:
                os.close(descriptor)
                written[number] = done
            except OSError as error:
                refusal = ("close", error.errno)
        if refusal:
            return written, refusal
    return written, None


def check_files(directory, written, who):
    for number, size in written.items():
        data = get(f"{directory}/fill{number}")
        cluster.check(len(data) == size, f"{who}: fill{number} has {len(data)} of {size} bytes")
        for offset in range(0, size, MIB):
            wanted = block(number, offset)[: size - offset]
            have = data[offset : offset + MIB]
            cluster.check(have == wanted, f"{who}: fill{number} is wrong at {offset}")


def bytes_on_nodes(store):
    used = 0
    for host in store.hosts:
        facts = os.statvfs(store.host(host)["objects"])
        used += (facts.f_blocks - facts.f_bfree) * facts.f_frsize
    return used


def free_bytes(mount):
    facts = os.statvfs(mount)
    return facts.f_bfree * facts.f_frsize


def check_df(store):
    mount = store.mount("h1")
    facts = os.statvfs(mount)
    total = facts.f_blocks * facts.f_frsize
    cluster.check(total == 2 * RAM, f"df says {total} bytes in all instead of {2 * RAM}")
    before = free_bytes(mount)
    put(f"{mount}/some", bytes(20 * MIB))
    taken = before - free_bytes(mount)
    cluster.check(taken >= 20 * MIB, f"df free fell by {taken} after {20 * MIB} bytes were written")
    other = free_bytes(store.mount("h2"))
    cluster.check(abs(before - taken - other) <= MIB, "df differs between mounts")
    os.unlink(f"{mount}/some")


def check_full(store, round_number):
    """Fills, verifies, empties; returns what fitted."""
    base = bytes_on_nodes(store)
    here, there = (f"{store.mount(host)}/full" for host in ("h1", "h2"))
    written, refusal = fill(here)
    fitted = sum(written.values())
    print(f"round {round_number}: {fitted / MIB:.1f} of {2 * RAM / MIB} MiB, then {refusal}")
    cluster.check(refusal is not None, "the store took more than it has")
    name = errno.errorcode.get(refusal[1])
    cluster.check(refusal == ("write", errno.ENOSPC), f"{refusal[0]} said {name}, not ENOSPC")
    share = fitted / (2 * RAM)
    cluster.check(share >= USABLE_MIN, f"only {share:.0%} of the store could be used")
    check_files(there, written, "the other mount")
    check_files(here, written, "the writing mount")
    descriptor = os.open(f"{here}/fill0", os.O_WRONLY)
    os.pwrite(descriptor, block(0, 0), 0)  # Its pages are there already.
    os.close(descriptor)
    for name in os.listdir(here):
        os.unlink(f"{here}/{name}")
    begin = time.monotonic()
    cluster.wait_until(
        lambda: bytes_on_nodes(store) <= base + MIB, 20, "pages of removed files back"
    )
    seconds = time.monotonic() - begin
    print(f"round {round_number}: pages back after {seconds:.2f} s")
    cluster.check(seconds <= BACK_S, f"removed bytes were back only after {seconds:.2f} s")


def check_spill(store):
    """A local file larger than its node goes on at the other one."""
    directory = cluster.placed_directory(f"{store.mount('h1')}/local", "local")
    path = f"{directory}/large"
    data = os.urandom(90 * MIB)
    put(path, data)
    where = os.getxattr(path, "user.mosa.location").decode().split(",")
    print(f"{len(data) // MIB} MiB for a node of {RAM // MIB} MiB lie on {where}")
    cluster.check(sorted(where) == ["h1", "h2"], f"the file lies on {where}")
    cluster.check(get(f"{store.mount('h2')}/local/large") == data, "the spilled file is wrong")
    os.unlink(path)


def test(arguments):
    with cluster.Cluster(arguments.bin, 2, ram="64M") as store:
        check_df(store)
        os.mkdir(f"{store.mount('h1')}/full")
        for round_number in (1, 2):
            check_full(store, round_number)
        time.sleep(BACK_S)
        check_spill(store)


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
