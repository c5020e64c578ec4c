"""Kinds of faults, made from outside of Mosa's programs. `begin(store, size)` is a context manager over a running cluster.

`culprits` says which answers are right, as (part, whether it must name the sick host). A kind is for building rules with, or sealed.
"""

import collections
import contextlib
import os
import pathlib
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("netns", "bench"):
    sys.path.insert(0, str(HERE.parent / folder))

import fault_library as library  # noqa: E402
from cluster import start_ticks  # noqa: E402

Kind = collections.namedtuple("Kind", "name begin sizes culprits sealed")
CPU = library.CPU_GROUPS


# ---- links

def set_rate(store, host, end, mbit):
    command, device = library.both_ends(store, host)[end]
    library.tool(*command, "qdisc", "change", "dev", device, "root", "tbf", "rate", f"{mbit:g}mbit", "burst", "256kb", "latency", "50ms")


@contextlib.contextmanager
def rates(store, share, hosts, ends):
    for host in hosts:
        for end in ends:
            set_rate(store, host, end, store.rate_mbit * share)
    try:
        yield
    finally:
        for host in hosts:
            for end in ends:
                set_rate(store, host, end, store.rate_mbit)


ARRIVING, LEAVING = 0, 1  # The root's end of the pair of interfaces sends to the host.


def link_out(store, share):
    return rates(store, share, [store.sick], [LEAVING])


def link_in(store, share):
    return rates(store, share, [store.sick], [ARRIVING])


def link_both(store, share):
    return rates(store, share, [store.sick], [ARRIVING, LEAVING])


def links_all(store, share):
    return rates(store, share, store.hosts, [ARRIVING, LEAVING])


# ---- processes that stand still

@contextlib.contextmanager
def pauses(pid, share, period_s):
    born = start_ticks(pid)
    ended = threading.Event()

    def loop():
        while not ended.is_set():
            if start_ticks(pid) != born:
                return
            os.kill(pid, signal.SIGSTOP)
            time.sleep(period_s * share)
            os.kill(pid, signal.SIGCONT)
            ended.wait(period_s * (1 - share))

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def paused(kind, host=None):
    def begin(store, size):
        share, period_s = size
        return pauses(store.pid(kind, host or store.sick), share, period_s)
    return begin


# ---- quotas of processors (cgroup v1)

@contextlib.contextmanager
def quota(store, pids, share):
    group = CPU / f"{store.name}-quota"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text("100000")  # The kernel gives no quota below a millisecond.
        (group / "cpu.cfs_quota_us").write_text(str(round(100000 * share)))
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (CPU / "cgroup.procs").write_text(pid)
        group.rmdir()


def daemon_quota(kind, host=None):
    def begin(store, share):
        return quota(store, [store.pid(kind, host or store.sick)], share)
    return begin


# ---- the manager's disk

@contextlib.contextmanager
def slow_log(store, sync_ms):
    """Each fdatasync of the manager takes so much longer."""
    made = pathlib.Path(store.scratch) / "slow_sync.so"
    if not made.exists():
        library.tool("cc", "-O2", "-shared", "-fPIC", "-o", made, HERE / "slow_sync.c")
    command = store.kill("manager", library.MANAGER)

    def start(more):
        store.start("manager", library.MANAGER, command, environment=more)
        time.sleep(library.RECLAIMING_S)
        library.settle(store)

    start({"LD_PRELOAD": str(made), "SLOW_SYNC_MS": str(sync_ms)})
    try:
        yield
    finally:
        store.kill("manager", library.MANAGER)
        start({})


# ---- the application

def application(stage_of):
    """A stage's programs compute so many times as long without saying so; those of all where stage_of(store) is "ALL"."""
    @contextlib.contextmanager
    def begin(store, times):
        name = f"SLOW_{stage_of(store)}"
        os.environ[name] = str(round(10 * times))
        try:
            yield
        finally:
            del os.environ[name]
    return begin


def largest_stage(store):
    return max(store.stages, key=lambda name: (store.stages[name], name))


LINK, NODE, MANAGER = [("link", True)], [("storage node", True)], [("manager", False)]
COMPUTING = [("computing", False)]
KINDS = [
    Kind("link-out", link_out, (0.25, 0.4), LINK, False),
    Kind("link-both", link_both, (0.4, 0.6), LINK, False),
    Kind("lossy", library.lossy_link, (0.05, 0.08), LINK, False),
    Kind("links-all", links_all, (0.5, 0.7), [("network", False)], False),
    Kind("node-paused", paused("storage"), ((0.5, 1.4), (0.8, 0.6)), NODE, False),
    Kind("manager-paused", paused("manager", "h0"), ((0.75, 0.8), (0.5, 0.2)), MANAGER, False),
    Kind("host-quota", library.stolen_cpu, (0.1, 0.2), [("processor", True)], False),
    Kind("slow-objects", library.slow_disk, (4e6, 8e6), NODE, False),
    Kind("no-pages", library.cold_cache, (1,), [("page cache", True)], False),
    Kind("wide-lock", library.wide_lock, (10_000, 20_000), MANAGER, False),
    Kind("placement", library.wrong_placement, ("/r*/*",), [("placement", False)], False),
    Kind("stage-computes", application(largest_stage), (2.5, 4), COMPUTING, False),
    Kind("link-in", link_in, (0.25, 0.4), LINK, True),
    Kind("resets", library.resetting_link, (0.3,), [("storage node", True), ("link", True)], True),
    Kind("refused", library.refused_connections, (0.3,), [("storage node", True), ("link", True)], True),
    Kind("mount-paused", paused("mount"), ((0.5, 1.0), (0.75, 0.4)), [("mount", True)], True),
    Kind("node-quota", daemon_quota("storage"), (0.03, 0.06), NODE, True),
    Kind("mount-quota", daemon_quota("mount"), (0.05, 0.1), [("mount", True)], True),
    Kind("manager-quota", daemon_quota("manager", "h0"), (0.03, 0.06), MANAGER, True),
    Kind("slow-log", slow_log, (15, 30), MANAGER, True),
    Kind("leaking", library.leaking_writes, (80,), NODE, True),
    Kind("one-seed", library.one_seed, (1,), [("placement", False)], True),
    Kind("chunk", library.wrong_chunk, ("16M",), [("placement", False)], True),
    Kind("all-compute", application(lambda store: "ALL"), (1.6, 2.2), COMPUTING, True),
]
