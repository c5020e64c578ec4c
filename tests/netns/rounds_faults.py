"""The faults of a round: what is done to which daemons, and what it leaves to be excused."""

import contextlib
import dataclasses
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import cluster

KINDS = ("kill", "stop", "link", "full", "wipe")
TARGETS = ("manager", "node", "mount", "host", "host+manager")
# A node's room, a wipe: of nodes alone. A link is a host's: cutting it cuts its node and its mount.
COMBINATIONS = (
    *(("kill", target) for target in TARGETS),
    *(("stop", target) for target in TARGETS),
    ("link", "manager"),
    ("link", "host"),
    ("link", "host+manager"),
    ("full", "node"),
    ("full", "manager"),
    ("wipe", "node"),
    ("wipe", "host"),
)
MANAGER_DISK = "256M"
BALLAST = ".ballast"


@dataclasses.dataclass
class Fault:
    """What happens in a round, and what of it happened when (time.monotonic)."""

    kind: str
    target: str
    host: str
    seconds: float  # How long it lasts.
    begin: float = 0.0
    end: float = 0.0
    stopped_mounts: tuple = ()  # Of these a wait does not count while it lasts.
    wiped: str = ""  # The host whose node came back empty.

    def __str__(self):
        where = self.host if self.target != "manager" else "h0"
        return f"{self.kind} {self.target} ({where}) for {self.seconds:.1f} s"

    def overlaps(self, operation):
        return operation.begin <= self.end and operation.end >= self.begin

    def daemons(self):
        """(kind, host) of what is hit."""
        found = []
        if self.target in ("mount", "host", "host+manager"):
            found.append(("mount", self.host))
        if self.target in ("node", "host", "host+manager"):
            found.append(("storage", self.host))
        if self.target in ("manager", "host+manager"):
            found.append(("manager", "h0"))
        return found


def choose(number, seed, chooser, hosts, only=""):
    """The fault of round `number`: all combinations take turns, in an order that the seed gives."""
    names = [c for c in COMBINATIONS if not only or only in " ".join(c)]
    order = list(names)
    random.Random(f"{seed}:order:{number // len(names)}").shuffle(order)
    kind, target = order[number % len(names)]
    longest = 4.0 if kind in ("kill", "wipe") else 20.0
    shortest = 0.1 if kind in ("kill", "wipe") else 1.0
    return Fault(kind, target, chooser.choice(hosts), chooser.uniform(shortest, longest))


def inflict(store, fault):
    """Blocks until the fault is over and what was ended runs again."""
    fault.begin = time.monotonic()
    try:
        {"kill": _kill, "stop": _stop, "link": _link, "full": _fill, "wipe": _wipe}[fault.kind](
            store, fault
        )
    finally:
        fault.end = time.monotonic()


def _kill(store, fault, between=lambda: None):
    daemons = fault.daemons()
    commands = {}
    for kind, host in daemons:
        commands[kind, host] = store.command(kind, host)
        os.kill(store.pid(kind, host), signal.SIGKILL)
    for kind, host in daemons:
        pid = store.pid(kind, host)
        cluster.wait_until(lambda pid=pid: cluster.has_ended(pid), 10, f"end of {kind}")
    between()
    time.sleep(fault.seconds)
    for kind, host in reversed(daemons):  # The manager first: the others need it.
        store.start(kind, host, commands[kind, host], wait_s=60)


def _stop(store, fault):
    pids = [store.pid(kind, host) for kind, host in fault.daemons()]
    if ("mount", fault.host) in fault.daemons():
        fault.stopped_mounts = (fault.host,)
    for pid in pids:
        cluster.stop(pid)
    try:
        time.sleep(fault.seconds)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def set_link(store, host, state):
    namespace = store.host(host)["net_namespace"]
    subprocess.run(["ip", "-n", namespace, "link", "set", "eth0", state], check=True)
    if state == "up":  # The default route went with the link.
        gateway = store.state["plan"]["gateway"]
        route = ["ip", "-n", namespace, "route", "replace", "default", "via", gateway]
        subprocess.run(route, capture_output=True, check=False)


def _link(store, fault):
    hosts = {host for _, host in fault.daemons()}
    for host in hosts:
        set_link(store, host, "down")
    try:
        time.sleep(fault.seconds)
    finally:
        for host in hosts:
            set_link(store, host, "up")


def _fill(store, fault):
    directory = store.host(fault.host)["objects"]
    if fault.target == "manager":
        directory = manager_data(store)
    path = f"{directory}/{BALLAST}"
    limit = time.monotonic() + fault.seconds
    try:
        with open(path, "wb") as ballast:
            while time.monotonic() < limit:  # What others free meanwhile is taken as well.
                with contextlib.suppress(OSError):
                    for step in (1 << 20, 4096):
                        while time.monotonic() < limit:
                            ballast.write(bytes(step))
                            ballast.flush()
                time.sleep(0.02)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _wipe(store, fault):
    fault.wiped = fault.host

    def empty():
        for path in pathlib.Path(store.host(fault.host)["objects"]).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    _kill(store, fault, empty)


def manager_data(store):
    return f"{store.host('h0')['directory']}/data"


def give_manager_a_disk(store):
    """Moves the manager's data to a file system of its own, which can be filled. Returns it."""
    data = manager_data(store)
    command = store.kill("manager", "h0")
    kept = f"{data}.kept"
    os.rename(data, kept)
    os.mkdir(data, 0o700)
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={MANAGER_DISK},mode=0700", "mosa-test", data]
    subprocess.run(mounted, check=True)
    shutil.copytree(kept, data, dirs_exist_ok=True)
    shutil.rmtree(kept)
    store.start("manager", "h0", command, wait_s=60)
    return data


def revive(store):
    """Starts again what has ended by itself; returns what that was."""
    found = []
    for kind in ("manager", "storage", "mount"):
        for host in ["h0"] if kind == "manager" else store.hosts:
            if cluster.start_ticks(store.pid(kind, host)) == 0:
                found.append((kind, host))
    return found
