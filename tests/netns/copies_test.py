"""Copies of files: made while a file is written or afterwards, read where they lie, made again
when a node is lost, moved off a node that is to leave.

Four hosts. Every byte that is read is compared with what was written.
"""

import hashlib
import json
import os
import time

import cluster
from full_store_test import MIB

FILE_BYTES = 16 * MIB
REPAIRED_S = 40  # 5 s of silence, 5 s of patience, and the copying.


def write(path, seed):
    data = hashlib.shake_128(seed.encode()).digest(FILE_BYTES)
    with open(path, "wb") as file:
        file.write(data)
    return hashlib.sha256(data).hexdigest()


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def layout(path):
    return json.loads(os.getxattr(path, "user.mosa.layout"))


def carried(store, host, how):
    return json.loads(os.getxattr(store.mount(host), "user.mosa.mount"))[f"bytes_read_{how}"]


def directory(store, name, **hints):
    path = f"{store.mount('h1')}/{name}"
    os.mkdir(path)
    for hint, value in hints.items():
        cluster.set_hint(path, hint, value)
    return name


def check_everywhere(store, name, wanted, hosts, why):
    for host in hosts:
        have = digest(f"{store.mount(host)}/{name}")
        cluster.check(have == wanted, f"{name} reads wrong on {host}: {why}")


def check_broadcast(store):
    """close returns when every host has a copy; from then on nobody reads over the network."""
    name = f"{directory(store, 'broadcast', pattern='broadcast:4')}/file"
    path = f"{store.mount('h1')}/{name}"
    wanted = write(path, "broadcast")
    cluster.check(layout(path)["replicas"] == 4, f"close returned before 4 copies: {layout(path)}")
    before = {host: carried(store, host, "remote") for host in store.hosts}
    check_everywhere(store, name, wanted, store.hosts, "after the broadcast")
    for host in store.hosts:
        over_network = carried(store, host, "remote") - before[host]
        cluster.check(over_network == 0, f"{host} has read {over_network} bytes over the network")
    # A rewrite makes all copies new ones.
    wanted = write(path, "broadcast again")
    check_everywhere(store, name, wanted, store.hosts, "after it was written again")
    cluster.check(layout(path)["replicas"] == 4, f"not 4 copies of the new bytes: {layout(path)}")


def check_lazy(store):
    """One node each, then a second copy by itself; one more and one less on demand."""
    made = directory(store, "lazy", placement="local", replicas="2", replicate="lazy")
    path = f"{store.mount('h1')}/{made}/file"
    wanted = write(path, "lazy")
    cluster.wait_until(lambda: layout(path)["replicas"] == 2, 20, "the second copy")
    for count in (3, 1):
        cluster.set_hint(path, "replicas", str(count))
        cluster.wait_until(lambda count=count: layout(path)["replicas"] == count, 20, f"{count} copies")
        check_everywhere(store, f"{made}/file", wanted, store.hosts, f"with {count} copies")


def check_lost_node(store):
    """A node dies for good: its files are read on from their copies, and get new ones."""
    files = {}
    for placement in ("local", "stripe"):
        made = directory(
            store, f"lost-{placement}", placement=placement, replicas="2", ack="pessimistic"
        )
        for host in store.hosts:
            name = f"{made}/{host}"
            files[name] = write(f"{store.mount(host)}/{name}", name)
    store.kill("storage", "h3")
    begin = time.monotonic()
    for name, wanted in files.items():
        check_everywhere(store, name, wanted, store.hosts, "with h3's node dead")
    print(f"{len(files)} files read by 4 hosts in {time.monotonic() - begin:.1f} s", flush=True)
    paths = [f"{store.mount('h1')}/{name}" for name in files]
    cluster.wait_until(
        lambda: all("h3" not in layout(p)["nodes"] and layout(p)["replicas"] == 2 for p in paths),
        REPAIRED_S,
        "two copies of every file again",
    )
    print(f"two copies of each again after {time.monotonic() - begin:.1f} s", flush=True)
    for name, wanted in files.items():
        check_everywhere(store, name, wanted, store.hosts, "after the repair")
    cluster.check(store.tell("lost", "--json").count("lost-") == 0, "mosa lost names a file")
    return files


def check_drain(store, files):
    """Nothing is lost when a node is emptied first and then killed."""
    alone = directory(store, "alone", placement="node:h2")
    name = f"{alone}/file"
    files = {**files, name: write(f"{store.mount('h1')}/{name}", name)}
    store.tell("node", "drain", "h2")
    cluster.wait_until(lambda: "drained" in store.tell("node", "list"), 30, "an empty h2")
    store.kill("storage", "h2")
    for path, wanted in files.items():
        check_everywhere(store, path, wanted, ("h1", "h4"), "with h2 drained and gone")


def test(arguments):
    with cluster.Cluster(arguments.bin, 4, ram="512M") as store:
        check_broadcast(store)
        check_lazy(store)
        files = check_lost_node(store)
        check_drain(store, files)


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
