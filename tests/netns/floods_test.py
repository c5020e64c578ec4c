"""One ordinary user floods a store: others go on, no daemon ends, memory stays below its limit.

Floods of attributes, of files, of control-plane connections and of requests come from one host as an
ordinary user; another host's small operations are timed before and during each.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

import cluster

USER = 65534
MIB = 1 << 20
ATTRIBUTES_MAX = 68 << 10  # Of one file, as docs/reference/limits.md says.
MOUNT_BYTES = 256 * MIB
MOUNT_BYTES_OF_FILE = 4 << 10
SLOWER_MAX = 2.0
SLACK_S = 0.004  # Of processors that flood and store share here, and would not on hosts of their own.


# ---- floods: each runs in a process of its own, as USER, until it is ended


def flood_attributes(mount, number, _):
    for file in range(1_000_000):
        path = f"{mount}/flood/a{number}-{file}"
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            for name in range(20):
                os.setxattr(path, f"user.a{name}", b"x" * 60000)


def flood_files(mount, number, _):
    for file in range(10_000_000):
        with contextlib.suppress(OSError):
            descriptor = os.open(f"{mount}/flood/f{number}-{file}", os.O_CREAT | os.O_WRONLY)
            try:
                os.write(descriptor, b"x" * 16000)
            finally:
                os.close(descriptor)


def flood_connections(_, __, address):
    host, port = address.rsplit(":", 1)
    silent = []
    while True:
        try:
            silent.append(socket.create_connection((host, int(port)), timeout=2))
        except OSError:
            time.sleep(0.01)
        if len(silent) > 1000:
            for connection in silent[:500]:
                connection.close()
            del silent[:500]


def flood_requests(mount, number, _):
    pick = random.Random(number)
    while True:
        with contextlib.suppress(OSError):
            os.stat(f"{mount}/flood/none{pick.random()}")
            os.listdir(f"{mount}/flood")


FLOODS = [
    ("attributes", flood_attributes),
    ("files", flood_files),
    ("connections", flood_connections),
    ("requests", flood_requests),
]


def begin(flood, number, mount, address, namespace):
    pid = os.fork()
    if pid != 0:
        return pid
    status = 1
    try:
        signal.alarm(0)
        os.nice(19)  # As if on processors of its own, as far as that goes.
        if flood is flood_connections:
            with open(f"/run/netns/{namespace}", encoding="ascii") as file:
                enter_network(file.fileno())
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
        flood(mount, number, address)
        status = 0
    finally:
        os._exit(status)


def enter_network(descriptor):
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newnet = 0x40000000
    if libc.setns(descriptor, clone_newnet) != 0:
        raise OSError(ctypes.get_errno(), "setns")


# ---- limits

FILL = """
import errno, os, sys
taken = []
for number in range(int(sys.argv[2])):
    path = f"{sys.argv[1]}/flood/limit{number}"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    taken.append(0)
    for name in range(20):
        try:
            os.setxattr(path, f"user.a{name}", b"x" * 10000)
            taken[-1] += 10000
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
    os.unlink(path)
print(max(taken))
"""


def check_attributes_end(store, files=50):
    """A file takes so many attributes, and the next one is refused with ENOSPC."""
    # One that an ordinary user may run: this one may lie in a home directory.
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    command = [python, "-c", FILL, store.mount("h1"), str(files)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, user=USER, group=USER, extra_groups=[]
    )
    cluster.check(done.returncode == 0, f"filling attributes: {done.stderr[-2000:]}")
    taken = int(done.stdout)
    print(f"of 200000 bytes of attributes a file took {taken}")
    cluster.check(0 < taken <= ATTRIBUTES_MAX, f"a file took {taken} bytes of attributes")


# ---- what the others see


def one_round(directory, number):
    """A small file made, found, read, removed: the seconds of each."""
    path = f"{directory}/o{number}"
    marks = [time.monotonic()]
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, b"y" * 1000)
    os.close(descriptor)
    marks.append(time.monotonic())
    with open(path, "rb") as file:
        cluster.check(file.read() == b"y" * 1000, f"{path} has other bytes")
    marks.append(time.monotonic())
    os.unlink(path)
    marks.append(time.monotonic())
    return [after - before for before, after in zip(marks, marks[1:])]


def measure(directory, seconds):
    rounds = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rounds.append(one_round(directory, len(rounds)))
    return [statistics.median(times) for times in zip(*rounds)]


# ---- what daemons take


def memory_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def manager_limits(store):
    with contextlib.suppress(cluster.Failed, json.JSONDecodeError):
        status = json.loads(store.tell("status", "--json"))
        return {limit["name"]: limit for limit in status.get("limits", [])}
    return {}


def memory_table(store):
    limits = manager_limits(store)
    stated = limits.get("memory", {}).get("limit") or 4096 * MIB
    mount = MOUNT_BYTES + limits.get("names", {}).get("used", 0) * MOUNT_BYTES_OF_FILE
    rows = []
    for daemon in store.state["daemons"]:
        kind, pid = daemon["kind"], daemon["process"]["pid"]
        most = {"manager": stated, "storage": 1024 * MIB, "mount": mount}.get(kind)
        if most is None:
            continue
        alive = os.path.exists(f"/proc/{pid}/status")
        cluster.check(alive, f"{kind} of {daemon['host']} has ended")
        used = memory_bytes(pid)
        rows.append([kind, daemon["host"], f"{used / MIB:.0f}", f"{most / MIB:.0f}"])
        cluster.check(used < most or cluster.is_sanitized(pid), f"{kind} of {daemon['host']} takes {used} of {most} bytes")
    return rows


def test(arguments):
    flags = ["--allow-other"]
    with cluster.Cluster(arguments.bin, 2, ram="512M", flags=flags) as store:
        own = f"{store.mount('h2')}/own"
        os.mkdir(own)
        os.mkdir(f"{store.mount('h1')}/flood")
        os.chown(f"{store.mount('h1')}/flood", USER, USER)
        address = store.state["manager_address"]
        namespace = store.host("h1")["net_namespace"]
        check_attributes_end(store)
        rows, failures = [], []
        for name, flood in FLOODS:
            before = measure(own, arguments.seconds / 2)
            pids = [begin(flood, n, store.mount("h1"), address, namespace) for n in range(2)]
            try:
                time.sleep(min(2, arguments.seconds / 4))
                during = measure(own, arguments.seconds)
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                for pid in pids:
                    os.waitpid(pid, 0)
            after = measure(own, 2)
            for step, quiet, busy in zip(["write", "read", "remove"], before, during):
                rows.append([name, step, *(f"{1000 * s:.2f}" for s in (quiet, busy))])
                rows[-1].append(f"{busy / quiet:.1f}")
                if busy > SLOWER_MAX * quiet + SLACK_S:
                    failures.append(f"{name}: {step} takes {busy / quiet:.1f} times as long")
            cluster.check(all(after), "others do not go on")
        cluster.print_table(["flood", "others'", "before ms", "during ms", "factor"], rows)
        print()
        cluster.print_table(["daemon", "host", "MiB at most", "limit MiB"], memory_table(store))
        cluster.check(not failures, "; ".join(failures))


def add_arguments(parser):
    parser.add_argument("--seconds", type=float, default=6, help="of each flood; by hand: 60")


if __name__ == "__main__":
    cluster.main(test, add_arguments=add_arguments, description=__doc__, limit_s=900)
