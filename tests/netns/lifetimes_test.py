"""Files that go by themselves give their RAM back: behind their last reader, at their workflow's end.

Two hosts. Readers are processes with MOSA_TASK in their environment; `mosa workflow` says what a
runner would say of them.
"""

import os
import subprocess
import time

import cluster
from consistency_test import put
from full_store_test import MIB, bytes_on_nodes, free_bytes

FILE_BYTES = 48 * MIB
BACK_S = 5.0  # A tenth of a second when the machine is not busy: the figure is printed.
# A mount may hold room that it was granted ahead of need.
GRANTED = 2 * MIB


class Store:
    def __init__(self, store):
        self.store = store
        self.here, self.there = store.mount("h1"), store.mount("h2")
        self.base = bytes_on_nodes(store)  # What empty object directories occupy.

    def tell(self, *words):
        self.store.tell("workflow", *words)

    def run(self, task, command):
        environment = {**os.environ, "MOSA_TASK": task}
        done = subprocess.run(["sh", "-ec", command], env=environment, timeout=60)
        cluster.check(done.returncode == 0, f"task {task} failed: {command}")

    def write(self, path, task="r/w"):
        self.run(task, f"head -c {FILE_BYTES} /dev/urandom > {path}")
        used = bytes_on_nodes(self.store)
        cluster.check(used >= FILE_BYTES, f"{path} occupies only {used} bytes")

    def read(self, path, task):
        self.run(task, f"cat {path} > /dev/null")

    def directory(self, name, lifetime):
        path = f"{self.here}/{name}"
        os.mkdir(path)
        cluster.set_hint(path, "lifetime", lifetime)
        return path

    def check_there(self, path, why):
        time.sleep(0.3)
        cluster.check(os.path.exists(path), f"{path} went: {why}")
        used = bytes_on_nodes(self.store)
        cluster.check(used >= FILE_BYTES, f"the bytes of {path} went: {why}")

    def check_back(self, path, begin, free_before, what):
        """The RAM must be back BACK_S after `begin`; df says so when idle grants are back too."""
        cluster.wait_until(
            lambda: bytes_on_nodes(self.store) <= self.base + MIB, 20, f"{what}: RAM back"
        )
        seconds = time.monotonic() - begin
        print(f"{what}: {FILE_BYTES // MIB} MiB are back after {seconds:.2f} s", flush=True)
        cluster.check(seconds <= BACK_S, f"{what}: back only after {seconds:.2f} s")
        cluster.wait_until(
            lambda: free_bytes(self.there) >= free_before - GRANTED, 20, f"{what}: df as before"
        )
        for mount in (self.here, self.there):
            name = f"{mount}/{os.path.relpath(path, self.here)}"
            cluster.check(not os.path.exists(name), f"{what}: {name} is there still")


def check_readers(store):
    directory = store.directory("readers", "readers:2")
    for placement in ("local", "stripe"):
        cluster.set_hint(directory, "placement", placement)
        free = free_bytes(store.there)
        path = f"{directory}/{placement}"
        store.write(path)
        store.read(f"{store.there}/readers/{placement}", "r/a")
        store.read(f"{store.there}/readers/{placement}", "r/a")
        store.read(path, "r/w")
        store.check_there(path, "one task has read it, and who wrote it")
        begin = time.monotonic()
        store.read(path, "r/b")
        store.check_back(path, begin, free, f"two readers of a {placement} file")


def check_open_file(store):
    """Somebody has it open, by passthrough on the writer's host and by the network elsewhere."""
    directory = store.directory("open", "readers:1")
    cluster.set_hint(directory, "placement", "local")
    for mount in (store.here, store.there):
        free = free_bytes(store.there)
        path = f"{directory}/f"
        data = os.urandom(FILE_BYTES)
        put(path, data)
        reader = open(f"{mount}/open/f", "rb", buffering=0)
        store.read(f"{store.there}/open/f", "r/a")
        store.check_there(path, f"it is open at {mount}")
        cluster.check(reader.read(1) + reader.readall() == data, "what is open reads wrong")
        begin = time.monotonic()
        reader.close()
        store.check_back(path, begin, free, f"a file that was open at {mount}")


def check_workflow(store):
    """Temporary files go at the end; who fails has read nothing."""
    directory = store.directory("temporary", "temporary")
    free = free_bytes(store.there)
    path = f"{directory}/f"
    store.write(path, "r1/w")
    store.tell("end", "r2")
    store.check_there(path, "another workflow has ended")
    begin = time.monotonic()
    store.tell("end", "r1")
    store.check_back(path, begin, free, "a workflow's end")

    directory = store.directory("told", "readers:1")
    path = f"{directory}/f"
    store.tell("begin", "r3")
    store.write(path, "r3/w")
    store.read(path, "r3/a")
    store.tell("task", "r3/a", "failed")
    store.check_there(path, "its only reader has failed")
    store.read(path, "r3/b")
    store.check_there(path, "its reader has not ended yet")
    begin = time.monotonic()
    store.tell("task", "r3/b", "ok")
    store.check_back(path, begin, free, "a task that has succeeded")
    store.tell("end", "r3")


def check_restart(store):
    """The manager is killed between two readers."""
    directory = store.directory("restart", "readers:2")
    free = free_bytes(store.there)
    path = f"{directory}/f"
    store.write(path)
    store.read(path, "r/a")
    time.sleep(0.3)
    command = store.store.kill("manager", "h0")
    store.store.start("manager", "h0", command)
    store.check_there(path, "the manager was restarted")
    begin = time.monotonic()
    store.read(path, "r/b")
    store.check_back(path, begin, free, "the second reader, after a restart")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2, ram="256M") as running:
        store = Store(running)
        check_readers(store)
        check_open_file(store)
        check_workflow(store)
        check_restart(store)


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
