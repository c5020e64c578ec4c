"""Faults for trials of `mosa compare`: what is wrong with a cluster's host, made from outside of Mosa's programs.

A fault is a context manager over a running cluster of namespaces, whose hosts it leaves as they were. It is at the host that
`store.sick` names.
"""

import contextlib
import os
import pathlib
import subprocess
import threading
import time

from cluster import check, wait_until

HERE = pathlib.Path(__file__).resolve().parent
MANAGER = "h0"  # Its host.
RECLAIMING_S = 5.5  # What a new manager gives its clients to say what they hold.
CPU_GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")


def tool(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def repeatedly(action, every_s):
    """Calls action() in a thread until the end; what it raises is raised then."""
    ended, failure = threading.Event(), []

    def loop():
        while not ended.wait(every_s):
            try:
                action()
            except BaseException as error:  # noqa: BLE001 - it is raised below.
                failure.append(error)
                return

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    for error in failure:
        raise error


# ---- the network

def both_ends(store, host):
    place = store.host(host)
    return [(["tc"], place["link"]), (["tc", "-n", place["net_namespace"]], "eth0")]


@contextlib.contextmanager
def lossy_link(store, share):
    """So many of the packets that leave or reach the host are lost."""
    space = store.host(store.sick)["net_namespace"]

    def nft(*words):
        tool("ip", "netns", "exec", space, "nft", *words)

    nft("add", "table", "ip", "loss")
    try:
        for hook in ("input", "output"):
            nft("add", "chain", "ip", "loss", hook, f"{{ type filter hook {hook} priority 0 ; }}")
            nft("add", "rule", "ip", "loss", hook, "numgen", "random", "mod", "10000", "<", str(round(share * 10000)), "drop")
        yield
    finally:
        nft("delete", "table", "ip", "loss")


@contextlib.contextmanager
def resetting_link(store, every_s):
    """All connections of the host's storage node are reset, again and again."""
    space = store.host(store.sick)["net_namespace"]
    port = store.node_port

    closed = []

    def reset():
        closed.extend(tool("ip", "netns", "exec", space, "ss", "-H", "-K", "sport", "=", f":{port}").splitlines())

    with repeatedly(reset, every_s):
        yield
    check(closed, f"`ss -K` has closed no connection of port {port}: the kernel may lack INET_DIAG_DESTROY")


@contextlib.contextmanager
def refused_connections(store, share):
    """Connections of the host's storage node are reset every half second, and so many of the questions for a new one are
    lost: who asked asks again when the kernel's fixed time is over, a second later."""
    space = store.host(store.sick)["net_namespace"]

    def nft(*words):
        tool("ip", "netns", "exec", space, "nft", *words)

    nft("add", "table", "ip", "refuse")
    try:
        nft("add", "chain", "ip", "refuse", "input", "{ type filter hook input priority 0 ; }")
        nft("add", "rule", "ip", "refuse", "input", "tcp", "dport", str(store.node_port), "tcp", "flags", "syn", "numgen", "random",
            "mod", "100", "<", str(round(share * 100)), "drop")
        with resetting_link(store, 0.5):
            yield
    finally:
        nft("delete", "table", "ip", "refuse")


# ---- processors

@contextlib.contextmanager
def stolen_cpu(store, share):
    """All that runs on the host has a share of one processor: its daemons, and tasks from a twentieth of a second after
    their start. Needs cgroup v1."""
    group = CPU_GROUPS / f"{store.name}-stolen"
    period_us = 10_000
    space = os.stat(f"/run/netns/{store.host(store.sick)['net_namespace']}").st_ino

    looks = {}

    def adopt():
        """Looks at each process a few times alone: it enters the host's namespace soon after it was forked."""
        there = list(filter(str.isdigit, os.listdir("/proc")))
        for pid in (pid for pid in there if looks.get(pid, 0) < 4):
            with contextlib.suppress(OSError):  # It is gone.
                if os.stat(f"/proc/{pid}/ns/net").st_ino == space:
                    (group / "cgroup.procs").write_text(pid)
        now = {pid: looks.get(pid, 0) + 1 for pid in there}
        looks.clear()
        looks.update(now)

    def release():
        left = (group / "cgroup.procs").read_text().split()
        for pid in left:
            with contextlib.suppress(OSError):
                (CPU_GROUPS / "cgroup.procs").write_text(pid)
        return not left

    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(period_us))
        (group / "cpu.cfs_quota_us").write_text(str(round(period_us * share)))
        adopt()
        with repeatedly(adopt, 0.05):
            yield
    finally:
        wait_until(release, 20, f"an empty {group}")  # What is in it may fork.
        group.rmdir()


# ---- storage

@contextlib.contextmanager
def slow_disk(store, bytes_per_second):
    """Objects of the host are read and written at no more than this rate, by all its daemons together."""
    objects = pathlib.Path(store.host(store.sick)["objects"])
    clock = pathlib.Path(store.scratch) / "slow_disk.clock"
    clock.write_bytes(bytes(8))
    with preloaded(store, "slow_disk", ("storage", "mount"), {"SLOW_DISK": str(objects), "SLOW_DISK_CLOCK": str(clock),
                                                              "SLOW_DISK_RATE": str(round(bytes_per_second))}):
        yield


@contextlib.contextmanager
def leaking_writes(store, passes):
    """The storage node keeps a copy of all that it writes, and looks through all copies so many times at each write."""
    with preloaded(store, "leaking_writes", ("storage",), {"LEAKING_WRITES": store.host(store.sick)["objects"],
                                                           "LEAKING_WRITES_PASSES": str(passes)}):
        yield


@contextlib.contextmanager
def cold_cache(store, _):
    """The host's kernel keeps no file's pages from one open to the next."""
    with preloaded(store, "cold_cache", ("mount",), {}):
        yield


@contextlib.contextmanager
def preloaded(store, name, kinds, environment):
    """These daemons of the host run with a library of that name, which is built from its source here."""
    library = pathlib.Path(store.scratch) / f"{name}.so"
    if not library.exists():
        tool("cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / f"{name}.c")
    commands = {kind: store.kill(kind, store.sick) for kind in reversed(kinds)}

    def start(words):
        for kind in kinds:
            store.start(kind, store.sick, commands[kind], environment=words)
        settle(store)

    start({"LD_PRELOAD": str(library), **environment})
    try:
        yield
    finally:
        for kind in reversed(kinds):
            store.kill(kind, store.sick)
        start({})


def settle(store):
    """Every mount writes to every node again, as the manager knows it."""
    def works():
        with contextlib.suppress(OSError):
            for host in store.hosts:
                for number in range(len(store.hosts)):
                    path = pathlib.Path(store.mount(host)) / f"settled.{host}.{number}"
                    path.write_bytes(bytes(4 << 20))
                    path.unlink()
            return True
        return False

    wait_until(works, 30, "that every mount writes again")


# ---- the manager

@contextlib.contextmanager
def faulty_manager(store, environment):
    """The manager is mosa-manager-faulty (faulty_manager.cc)."""
    command = store.kill("manager", MANAGER)
    faulty = [str(pathlib.Path(command[0]).with_name("mosa-manager-faulty")), *command[1:]]

    def start(words, more):
        store.start("manager", MANAGER, words, environment=more)
        time.sleep(RECLAIMING_S)
        settle(store)

    start(faulty, environment)
    try:
        yield
    finally:
        store.kill("manager", MANAGER)
        start(command, {})


def wide_lock(store, hold_us):
    return faulty_manager(store, {"MOSA_FAULT_HOLD_US": str(hold_us)})


def one_seed(store, _):
    return faulty_manager(store, {"MOSA_FAULT_ONE_SEED": "1"})


# ---- what was asked for is not what is there

@contextlib.contextmanager
def wrong_placement(store, glob):
    """A rule that nobody who predicts knows of puts these files on one host."""
    store.tell("hint", "rule", "add", glob, f"placement=node:{store.sick}")
    try:
        yield
    finally:
        store.tell("hint", "rule", "remove", glob)


@contextlib.contextmanager
def wrong_chunk(store, chunk):
    """A rule that nobody who predicts knows of gives all files chunks of this size."""
    store.tell("hint", "rule", "add", "/r*/*", f"chunk_size={chunk}")
    try:
        yield
    finally:
        store.tell("hint", "rule", "remove", "/r*/*")
