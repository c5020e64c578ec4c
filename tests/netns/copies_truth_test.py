"""Copies tell the truth: a writer that dies in an overwrite, damage with and without another copy,
and closes that do not get the copies they are to wait for.

Three hosts. Each trouble is tried several times; what programs see is compared with what they may.
"""

import errno
import json
import mmap
import os
import pathlib
import subprocess
import sys

import cluster
from full_store_test import MIB

FILE_BYTES = 8 * MIB
SEEN_S = 60  # A lease, a comparison, a round of the scrubber on a loaded machine.

OVERWRITE = """
import os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.pwrite(fd, b"B" * (4 << 20), 0)
print("stored", flush=True)
signal.pause()
"""

# A process of its own: children of this one would close what it has open.
WRITE_AND_CLOSE = """
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
os.write(fd, b"x" * (1 << 20))
print("stored", flush=True)
sys.stdin.read()
try:
    os.close(fd)
    print(0)
except OSError as failure:
    print(failure.errno)
"""


def layout(path):
    return json.loads(os.getxattr(path, "user.mosa.layout"))


def all_valid(path, count):
    copies = layout(path)
    return copies["replicas"] == count and all(c["state"] == "valid" for c in copies["copies"])


def directory(store, name, **hints):
    path = f"{store.mount('h1')}/{name}"
    os.mkdir(path)
    for hint, value in hints.items():
        cluster.set_hint(path, hint, value)
    return path


def whole(path, offset=0, length=FILE_BYTES):
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


def readable(path):
    try:
        return whole(path)
    except OSError:
        return None


def check_dead_writer(store, number):
    """kill -9 of a mount in an overwrite: two readers never see different bytes."""
    path = f"{directory(store, f'dead{number}', replicas='2', placement='local')}/f"
    with open(path, "wb") as file:
        file.write(b"A" * FILE_BYTES)
    cluster.wait_until(lambda: all_valid(path, 2), SEEN_S, "two copies")
    writer = subprocess.Popen([sys.executable, "-c", OVERWRITE, path], stdout=subprocess.PIPE)
    writer.stdout.readline()
    command = store.kill("mount", "h1")
    writer.kill()
    writer.wait()
    names = [f"{store.mount(host)}/dead{number}/f" for host in ("h2", "h3")]

    def ended():
        sessions = json.loads(store.tell("status", "--json"))["mounts"]
        return len(sessions) == 2

    cluster.wait_until(ended, SEEN_S, "the end of the dead mount's session")
    for name in names:
        cluster.wait_until(
            lambda name=name: all_valid(name, 2), SEEN_S, f"two equal copies: {layout(name)}"
        )
        seen = [whole(each) for each in names]
        cluster.check(seen[0] == seen[1], "two mounts see different bytes")
    cluster.check(set(seen[0]) <= {ord("A"), ord("B")}, "bytes that nobody has written")
    cluster.check(seen[0][4 * MIB :] == b"A" * (FILE_BYTES - 4 * MIB), "acknowledged bytes are gone")
    store.start("mount", "h1", command)
    # Each node's own object, as nobody but the store sees it.
    objects = [p.read_bytes() for p in objects_of(store, path)]
    cluster.check(len(objects) == 2 and objects[0] == objects[1], "the copies differ on their nodes")
    return b"B" in seen[0]


def objects_of(store, path):
    """The files on the nodes that hold objects of this file."""
    file_id = json.loads(store.tell("stat", "--json", path))["manager"]["id"]
    found = []
    for host in store.hosts:
        root = pathlib.Path(store.directory) / store.name / host / "objects"
        for each in root.rglob("*"):
            if each.is_file() and each.name == f"{file_id:016x}":
                found.append(each)
    return found


def damage(store, path, host):
    for each in objects_of(store, path):
        if f"/{host}/" in str(each):
            with open(each, "r+b") as file:
                file.seek(1_000_000)
                file.write(b"XXXX")
            return
    raise cluster.Failed(f"{host} has no object of {path}")


def sealed_copy(store, name, data, **hints):
    path = f"{directory(store, name, **hints)}/f"
    with open(path, "wb") as file:
        file.write(data)
    return path


def wait_until_sealed(store):
    def sealed():
        nodes = json.loads(store.tell("status", "--json"))["nodes"]
        return all(node["unsealed_objects"] == 0 for node in nodes)

    cluster.wait_until(sealed, SEEN_S, "checksums of all objects")


def corrupt_blocks(store):
    nodes = json.loads(store.tell("status", "--json"))["nodes"]
    return sum(node["corrupt_blocks"] for node in nodes)


def check_damage(store, number, host):
    """Damage of either copy is repaired from the other one, before that one is lost."""
    data = os.urandom(FILE_BYTES // 2)
    path = sealed_copy(store, f"rot{number}", data, replicas="2", placement="node:h1")
    cluster.wait_until(lambda: all_valid(path, 2), SEEN_S, "two copies")
    wait_until_sealed(store)
    objects = objects_of(store, path)
    cluster.check(len(objects) == 2, f"objects: {objects}")
    hosts = [h for h in store.hosts if any(f"/{h}/" in str(p) for p in objects)]
    where = host if host in hosts else next(h for h in hosts if h != "h1")
    damage(store, path, where)

    def repaired():
        objects = [p.read_bytes() for p in objects_of(store, path)]
        return len(objects) == 2 and all(o == data for o in objects) and all_valid(path, 2)

    cluster.wait_until(repaired, SEEN_S, f"the repair of {where}: {layout(path)}")
    cluster.check(whole(path) == data, "the file reads wrong")
    cluster.wait_until(lambda: corrupt_blocks(store) == 0, SEEN_S, "no damaged block")
    cluster.check(f"rot{number}" not in store.tell("lost"), "mosa lost names a repaired file")


def check_damage_of_the_only_copy(store):
    """It is listed with its task, its other blocks are read, and writing it anew ends that."""
    data = os.urandom(FILE_BYTES // 2)
    os.environ["MOSA_TASK"] = "the-writer"
    path = sealed_copy(store, "single", data, placement="node:h2")
    wait_until_sealed(store)
    damage(store, path, "h2")
    cluster.wait_until(lambda: "single/f" in store.tell("lost"), SEEN_S, "the file in mosa lost")
    listed = json.loads(store.tell("lost", "--json"))
    file = next(f for f in listed if f["path"].endswith("single/f"))
    cluster.check(not file["lost"] and "h2" in file["damage"], f"mosa lost: {file}")
    cluster.check("damage" in layout(path), f"layout: {layout(path)}")
    stat = json.loads(store.tell("stat", "--json", path))
    cluster.check(stat["manager"]["damage"] != "", f"mosa stat: {stat}")
    for host in ("h1", "h2", "h3"):
        name = f"{store.mount(host)}/single/f"
        block = 1_000_000 // 65536 * 65536
        got = readable(name)
        # The writer's kernel may still have the pages that were written.
        if host == "h1" and got == data:
            continue
        cluster.check(got is None, f"{host} reads the damaged block")
        cluster.check(whole(name, 0, 65536) == data[:65536], f"{host} cannot read the first block")
        cluster.check(
            whole(name, block + 65536, 65536) == data[block + 65536 : block + 131072],
            f"{host} cannot read the block behind the damage",
        )
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, data, 0)
    os.close(fd)
    cluster.wait_until(lambda: "single/f" not in store.tell("lost"), SEEN_S, "its end in mosa lost")
    cluster.check(whole(f"{store.mount('h3')}/single/f") == data, "what was written anew reads wrong")


def close_error(path):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"x" * (4 * MIB))
    try:
        os.close(fd)
    except OSError as failure:
        return failure.errno
    return 0


def write_and_fsync(path):
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, b"2" * MIB, 0)
    os.fsync(fd)
    os.close(fd)


def write_by_one_of_two(path):
    first, second = os.open(path, os.O_WRONLY), os.open(path, os.O_WRONLY)
    os.pwrite(first, b"2" * MIB, 0)
    os.close(first)
    os.close(second)


def store_into_a_mapping(path):
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, 0) as mapped:
        mapped[:MIB] = b"2" * MIB
        mapped.flush()
    os.close(fd)


def check_close_after_fsync(store, number):
    """The last close waits for the copies of all that was written, whoever told of it before."""
    home = directory(store, f"told{number}", pattern="broadcast:2")
    for write in (write_and_fsync, write_by_one_of_two, store_into_a_mapping):
        for host in store.hosts:
            name = f"{write.__name__}-{host}"
            with open(f"{home}/{name}", "wb") as file:
                file.write(b"1" * FILE_BYTES)
            write(f"{store.mount(host)}/told{number}/{name}")
            cluster.check(all_valid(f"{home}/{name}", 2), f"{name}: {layout(f'{home}/{name}')}")
            os.unlink(f"{home}/{name}")


def check_pessimistic_close(store):
    """close and truncate wait for the copies. Without them close answers an error, and keeps the
    bytes."""
    made = directory(store, "pess", replicas="3", ack="pessimistic")
    cluster.check(close_error(f"{made}/three") == 0, "close fails with three nodes")
    for size in (3 * MIB, MIB + 1, 0, MIB):
        os.truncate(f"{made}/three", size)
        cluster.check(os.stat(f"{made}/three").st_size == size, f"the size is not {size}")
        there = f"{store.mount('h2')}/pess/three"
        cluster.check(os.stat(there).st_size == size, f"h2 does not see {size} bytes")
        found = layout(f"{made}/three")
        cluster.check(size == 0 or all_valid(f"{made}/three", 3), f"after {size}: {found}")
    strict = directory(
        store, "strict", replicas="3", ack="pessimistic", strict="1", placement="local"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE_AND_CLOSE, f"{strict}/begun"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    writer.stdout.readline()
    dead = ("h2", "h3")
    for host in dead:
        store.kill("storage", host)

    def silent():
        nodes = json.loads(store.tell("status", "--json"))["nodes"]
        return all(node["state"] == "silent" for node in nodes if node["name"] in dead)

    cluster.wait_until(silent, SEEN_S, "two silent nodes")
    got = close_error(f"{made}/one")
    cluster.check(got == errno.EIO, f"close without two of three nodes answers {got}")
    cluster.check(whole(f"{made}/one") == b"x" * (4 * MIB), "the bytes were not kept")
    counts = json.loads(os.getxattr(store.mount("h1"), "user.mosa.mount"))
    cluster.check(counts["closes_without_copies"] == 1, f"counts: {counts}")
    said = [line for _, lines in store.logs() for line in lines if "so the call fails" in line]
    cluster.check(len(said) == 1 and "1 of 3 copies" in said[0], f"log: {said}")
    writer.stdin.close()
    got = int(writer.stdout.readline())
    writer.wait()
    cluster.check(got in (errno.EIO, errno.ENOSPC), f"strict=1 whose nodes died: {got}")
    cluster.check(whole(f"{strict}/begun") == b"x" * MIB, "strict=1: the bytes were not kept")
    try:
        got = close_error(f"{strict}/f")
    except OSError as failure:  # At the write already.
        got = failure.errno
    cluster.check(got in (errno.EIO, errno.ENOSPC), f"strict=1 without two of three nodes: {got}")
    auto = directory(store, "auto", replicas="auto", ack="pessimistic")
    got = close_error(f"{auto}/f")
    cluster.check(got in (0, errno.EIO), f"close with replicas=auto answers {got}")
    print(f"replicas=auto on one node of three: {got}", flush=True)


def check_dead_writers(store, times):
    new = sum(check_dead_writer(store, number) for number in range(times))
    print(f"{times} dead writers; {new} had stored something", flush=True)


def check_damages(store, times):
    for number in range(times):
        check_damage(store, number, "h1" if number % 2 else "another")
    print(f"{times} damaged copies repaired", flush=True)


def check_closes(store, times):
    for number in range(times):
        check_close_after_fsync(store, number)


def test(arguments):
    checks = {
        "dead": lambda store: check_dead_writers(store, arguments.times),
        "damage": lambda store: check_damages(store, arguments.times),
        "fsync": lambda store: check_closes(store, arguments.times),
        "single": check_damage_of_the_only_copy,
        "pessimistic": check_pessimistic_close,
    }
    with cluster.Cluster(arguments.bin, 3, ram="256M") as store:
        for name, check in checks.items():
            if arguments.only in name:
                check(store)


def add_arguments(parser):
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--only", default="", help="part of: dead damage fsync single pessimistic")


if __name__ == "__main__":
    cluster.main(test, limit_s=800, add_arguments=add_arguments, description=__doc__)
