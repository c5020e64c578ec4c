"""Daemons killed with -9, or stopped, under load: nothing acknowledged is lost, and no wait is long.

Two mounts write, rename, remove and verify small and large files while the manager, a storage node
or a mount is killed and started again; then both mounts are compared with what was acknowledged.
A storage node that does not come back: its files answer EIO soon, everything else goes on.
"""

import errno
import os
import shutil
import signal
import tempfile
import time

import cluster
from consistency_test import get, put
from load import Outcome, Worker

WAIT_MAX_S = 15
EIO_MAX_S = 9  # 5 s of silence, and what a busy machine takes.
LOAD_S = 1.5


class Scenario:
    """One row of the table."""

    def __init__(self, store, what, number):
        self.store, self.what = store, what
        self.scratch = tempfile.mkdtemp(dir="/dev/shm", prefix="mosa-faults-")
        self.directory = f"load-{number}"
        os.mkdir(f"{store.mount('h1')}/{self.directory}")
        self.workers = {}
        for seed, host in enumerate(("h1", "h2"), start=1):
            directory = f"{store.mount(host)}/{self.directory}/w{seed}"
            log = f"{self.scratch}/w{seed}"
            self.workers[f"w{seed}"] = Worker(directory, log, 10 * number + seed)

    def run(self, fault):
        """Returns (row, complaints)."""
        time.sleep(LOAD_S)
        begin = time.monotonic()
        fault(self.store)
        down_s = time.monotonic() - begin
        time.sleep(LOAD_S)
        complaints = [
            f"{self.what}: {name} hangs"
            for name, worker in self.workers.items()
            if not worker.stop()
        ]
        outcomes = {name: Outcome(f"{self.scratch}/{name}") for name in self.workers}
        lost = []
        for name, outcome in outcomes.items():
            for host in ("h1", "h2"):
                path = f"{self.store.mount(host)}/{self.directory}/{name}"
                lost += [f"{host}: {name}/{text}" for text in outcome.losses(path)]
        shutil.rmtree(self.scratch)
        failed = {}
        for outcome in outcomes.values():
            for error, count in outcome.failed.items():
                failed[error] = failed.get(error, 0) + count
        longest = max(outcome.longest_s for outcome in outcomes.values())
        wrong = sum(outcome.wrong for outcome in outcomes.values())
        done = sum(outcome.acknowledged for outcome in outcomes.values())
        if lost:
            complaints.append(f"{self.what}: {len(lost)} lost, first {lost[:3]}")
        if wrong:
            complaints.append(f"{self.what}: {wrong} reads gave wrong bytes")
        if longest >= WAIT_MAX_S:
            complaints.append(f"{self.what}: a wait of {longest:.1f} s")
        shown = " ".join(f"{error}:{count}" for error, count in sorted(failed.items())) or "0"
        row = (self.what, f"{down_s:.1f}", done, shown, len(lost) + wrong, f"{longest:.1f}")
        return row, complaints, failed


def restart(kind, host, pause_s=0.5):
    def fault(store):
        command = store.kill(kind, host)
        time.sleep(pause_s)
        store.start(kind, host, command)

    return fault


def pause(kind, host, pause_s):
    """Stops a daemon for a while and lets it go on: it finds that time has passed without it."""

    def fault(store):
        pid = store.pid(kind, host)
        cluster.stop(pid)
        time.sleep(pause_s)
        os.kill(pid, signal.SIGCONT)

    return fault


def check_node_lost(store):
    """h3's storage node dies for good. Returns (row, complaints)."""
    data = os.urandom(300_000)
    for host in ("h1", "h3"):
        directory = cluster.placed_directory(f"{store.mount(host)}/on-{host}", "local")
        for number in range(8):
            put(f"{directory}/f{number}", data)
            cluster.check_location(f"{directory}/f{number}", host)
    store.kill("storage", "h3")
    begin = time.monotonic()
    complaints = []
    longest_s, eio_s, done = 0.0, 0.0, 0
    for host in ("h1", "h2"):
        root = store.mount(host)
        for number in range(8):
            started = time.monotonic()
            try:
                get(f"{root}/on-h3/f{number}")
                complaints.append(f"{host} read f{number} of the dead node")
            except OSError as error:
                if error.errno != errno.EIO:
                    complaints.append(f"{host}: {errno.errorcode[error.errno]} instead of EIO")
            eio_s = max(eio_s, time.monotonic() - started)
            started = time.monotonic()
            if get(f"{root}/on-h1/f{number}") != data:
                complaints.append(f"{host}: f{number} of a living node is wrong")
            longest_s = max(longest_s, time.monotonic() - started)
            done += 1
    time.sleep(max(0.0, EIO_MAX_S + 1 - (time.monotonic() - begin)))
    for host in ("h1", "h2"):  # What is written now goes to living nodes.
        path = f"{store.mount(host)}/after-{host}"
        put(path, data * 10)
        if get(path) != data * 10:
            complaints.append(f"{host}: a file written after the loss is wrong")
        os.unlink(f"{store.mount(host)}/on-h3/f{0 if host == 'h1' else 1}")
        done += 3
    if eio_s > EIO_MAX_S:
        complaints.append(f"EIO only after {eio_s:.1f} s")
    row = ("storage node, for good", f"EIO {eio_s:.1f}", done, "0", 0, f"{longest_s:.1f}")
    return row, [f"storage node lost: {text}" for text in complaints]


def check_unfinished_is_reclaimed(store):
    """A file that a killed mount never closed is not there afterwards. Returns complaints."""
    path = f"{store.mount('h2')}/unfinished"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, bytes(1_000_000))
    command = store.kill("mount", "h2")
    try:
        os.close(descriptor)
    except OSError:
        pass  # The mount is dead.
    store.start("mount", "h2", command)
    for host in ("h1", "h2"):
        name = f"{store.mount(host)}/unfinished"
        cluster.wait_until(
            lambda name=name: not os.path.exists(name), WAIT_MAX_S, f"{name} reclaimed"
        )


def test(arguments):
    rows, complaints = [], []
    faults = [
        ("manager", restart("manager", "h0")),
        ("manager, twice", lambda store: [restart("manager", "h0")(store) for _ in range(2)]),
        ("manager, stopped 7 s", pause("manager", "h0", 7)),
        ("storage node, 0.5 s", restart("storage", "h2")),
        ("storage node, 7 s", restart("storage", "h3", 7)),
        ("mount", restart("mount", "h2")),
    ]
    with cluster.Cluster(arguments.bin, 3) as store:
        for number, (what, fault) in enumerate(faults):
            if arguments.only and arguments.only not in what:
                continue
            row, found, failed = Scenario(store, what, number).run(fault)
            rows.append(row)
            complaints += found
            if what.startswith("manager") and failed:
                complaints.append(f"{what}: operations failed instead of waiting: {failed}")
        titles = ["killed", "down s", "acknowledged", "failed", "lost", "longest wait s"]
        cluster.print_table(titles, rows)
        if not arguments.only or "unfinished" in arguments.only:
            check_unfinished_is_reclaimed(store)
        if not arguments.only or "for good" in arguments.only:
            row, found = check_node_lost(store)
            cluster.print_table(titles, [row])
            complaints += found
        for text in complaints:
            print(text)
        cluster.check(not complaints, f"{len(complaints)} complaints")


if __name__ == "__main__":
    cluster.main(
        test,
        description=__doc__,
        add_arguments=lambda parser: parser.add_argument("--only", help="part of a fault's name"),
    )
