#!/usr/bin/env python3
"""The mounts' benchmark: Mosa beside its baselines, measured in the same run.

  tests/bench/run.py --bin build/dev/bin
  tests/bench/run.py --bin build/dev/bin --rows 'local-*,remote-read' --quick

Brings clusters up and down by itself (root). Baselines: tmpfs, libfuse's passthrough_ll on tmpfs
(built from the sources that libfuse's development package ships), and raw TCP between the same
namespaces (iperf3). Every figure is a median over --repeats, and every ratio the median of ratios
within a repeat, since absolute figures drift. Prints a Markdown table; --output writes all as JSON.
Exit code 1 if a target was not reached (0 with --no-gate).
"""

import argparse
import contextlib
import fnmatch
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from cluster import (  # noqa: E402
    Cluster,
    Failed,
    check,
    check_location,
    placed_directory,
    set_hint,
    why_not,
)
from rows import PEERS, ROWS, Results, to_markdown  # noqa: E402

PASSTHROUGH_SOURCE = "/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c"
MIB = 1 << 20
GIB = 1 << 30


class Bench:
    def __init__(self, arguments):
        self.binaries = pathlib.Path(arguments.bin).resolve()
        self.program = arguments.mount_bench or str(self.find_program())
        self.repeats = 1 if arguments.quick else arguments.repeats
        self.quick = arguments.quick
        self.wanted = arguments.wanted
        self.results = Results()

    def find_program(self):
        for path in (self.binaries, self.binaries.parent / "tests" / "bench"):
            if (path / "mount_bench").exists():
                return path / "mount_bench"
        raise Failed(f"no mount_bench near {self.binaries}: build it, or name it by --mount-bench")

    def wants(self, *names):
        return any(name in self.wanted for name in names)

    def add(self, name, value, baseline=None, **more):
        if name in self.wanted:
            self.results.add(name, value, baseline, **more)
            print(f"  {name}: {value:.1f} of {baseline or 0:.1f}", file=sys.stderr, flush=True)

    def measure(self, paths, phases, *, size=GIB, block=MIB, files=2000, pids=(), name="stream", more=()):
        """What mount_bench says, by phase."""
        command = [self.program, *map(str, paths), "--phases", ",".join(phases)]
        command += ["--size", str(size), "--block", str(block), "--files", str(files)]
        command += ["--name", name, *more]
        if pids:
            command += ["--pid", ",".join(map(str, pids))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        check(done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}")
        return {phase["phase"]: phase for phase in json.loads(done.stdout)["phases"]}

    def cluster(self, hosts, **options):
        print(f"cluster of {hosts} {options or ''}", file=sys.stderr, flush=True)
        return Cluster(self.binaries, hosts, **options)


@contextlib.contextmanager
def tmpfs(size):
    """A tmpfs whose memory the machine has handed out before: first touches are not measured."""
    path = tempfile.mkdtemp(prefix="mosa-bench-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=True)
    try:
        yield pathlib.Path(path)
    finally:
        subprocess.run(["umount", "-l", path], check=True)
        os.rmdir(path)


def warm_up(bench, size):
    with tmpfs(2 * size) as path:
        bench.measure([path], ["write"], size=size)


# ---- own node


def own_node(bench, group, flags):
    size = 128 * MIB if bench.quick else GIB
    phases = ("write", "overwrite", "read")
    if not bench.wants(*(f"{group}-{p}{e}" for p in phases for e in ("", "-4k"))):
        return
    with tmpfs(3 * size) as baseline, bench.cluster(1, ram="3G", flags=flags) as store:
        warm_up(bench, 3 * size)
        local = placed_directory(f"{store.mount('h1')}/local", "local")
        for _ in range(bench.repeats):
            for block, ending in ((MIB, ""), (4096, "-4k")):
                if not bench.wants(*(f"{group}-{phase}{ending}" for phase in phases)):
                    continue
                raw = bench.measure([baseline], phases, size=size, block=block)
                pids = store.pids("mount", "storage", "manager")
                ours = bench.measure([local], phases, size=size, block=block, pids=pids)
                check_location(f"{local}/stream.0", "h1")
                for phase in phases:
                    bench.add(
                        f"{group}-{phase}{ending}",
                        ours[phase]["mb_per_s"],
                        raw[phase]["mb_per_s"],
                        cpu_s_per_gb=ours[phase]["cpu_s_per_gb"],
                        baseline_cpu_s_per_gb=raw[phase]["cpu_s_per_gb"],
                    )


def local_group(bench):
    own_node(bench, "local", [])


def plain_group(bench):
    own_node(bench, "plain", ["--no-passthrough"])


# ---- another node


def raw_tcp(store, source, target, seconds):
    """(MB/s, CPU seconds per GB) of one TCP stream from host to host."""
    namespace = store.host(target)["net_namespace"]
    address = store.host(target)["address"]
    listen = ["ip", "netns", "exec", namespace, "iperf3", "-s", "-1", "-B", address]
    server = subprocess.Popen(listen, stdout=subprocess.DEVNULL)
    try:
        for _ in range(50):
            sent = store.exec(source, "iperf3", "-c", address, "-J", "-t", str(seconds), "-N")
            facts = json.loads(sent.stdout or "{}")
            if "error" not in facts and facts:
                break
            time.sleep(0.1)
        check("end" in facts, f"iperf3 from {source} to {target}: {sent.stdout} {sent.stderr}")
        end = facts["end"]
        rate = end["sum_received"]["bits_per_second"] / 8e6
        percent = end["cpu_utilization_percent"]
        cpu = (percent["host_total"] + percent["remote_total"]) / 100 / (rate / 1e3)
        return rate, cpu
    finally:
        server.terminate()
        server.wait()


def remote_stream(bench, store, size):
    """A file of `size` that lies on h2 alone; returns its directory as h1 sees it."""
    there = placed_directory(f"{store.mount('h2')}/there", "local")
    bench.measure([there], ["write"], size=size)
    check_location(f"{there}/stream.0", "h2")
    return f"{store.mount('h1')}/there"


def remote(bench, suffix, rate, size):
    names = (f"remote-read{suffix}", f"remote-write{suffix}")
    if not bench.wants(*names):
        return
    with bench.cluster(2, ram="3G", rate=rate) as store:
        warm_up(bench, 2 * size)
        path = remote_stream(bench, store, size)
        pids = store.pids("mount", "storage", "manager")
        seconds = 1 if bench.quick else 3
        for _ in range(bench.repeats):
            raw, raw_cpu = raw_tcp(store, "h1", "h2", seconds)
            ours = bench.measure([path], ["overwrite"], size=size, pids=pids)["overwrite"]
            more = {"cpu_s_per_gb": ours["cpu_s_per_gb"], "baseline_cpu_s_per_gb": raw_cpu}
            bench.add(names[1], ours["mb_per_s"], raw, **more)
            raw, raw_cpu = raw_tcp(store, "h2", "h1", seconds)
            ours = bench.measure([path], ["read"], size=size, pids=pids)["read"]
            more = {"cpu_s_per_gb": ours["cpu_s_per_gb"], "baseline_cpu_s_per_gb": raw_cpu}
            bench.add(names[0], ours["mb_per_s"], raw, **more)
        check_location(f"{path}/stream.0", "h2")


def remote_group(bench):
    remote(bench, "-1gbit", "1gbit", 128 * MIB if bench.quick else 512 * MIB)
    remote(bench, "", None, 128 * MIB if bench.quick else GIB)


def striped_group(bench):
    if not bench.wants("striped-1", "striped-4"):
        return
    size = 64 * MIB if bench.quick else 256 * MIB
    remote_share = 3 / 4  # The fourth node is the reader's own.
    with bench.cluster(4, ram="2G", rate="200mbit") as store:
        hosts = store.hosts
        paths = [
            f"{placed_directory(store.mount(hosts[0]) + '/striped', 'stripe')}",
            *[f"{store.mount(host)}/striped" for host in hosts[1:]],
        ]
        bench.measure(paths, ["write"], size=size)
        for number, path in enumerate(paths):
            check_location(f"{path}/stream.{number}", *hosts)
        pids = store.pids("mount", "storage", "manager")
        others = [*paths[1:], paths[0]]  # Each reads what another host wrote.
        for _ in range(bench.repeats):
            raw, _ = raw_tcp(store, "h1", "h2", 1 if bench.quick else 3)
            one = bench.measure(others[:1], ["read"], size=size, pids=pids)["read"]
            bench.add(
                "striped-1", one["mb_per_s"] * remote_share, raw, cpu_s_per_gb=one["cpu_s_per_gb"]
            )
            four = bench.measure(others, ["read"], size=size, pids=pids)["read"]
            bench.add(
                "striped-4",
                four["mb_per_s"] * remote_share,
                4 * raw,
                cpu_s_per_gb=four["cpu_s_per_gb"],
            )


# ---- names


@contextlib.contextmanager
def passthrough_example(bench, source):
    """libfuse's passthrough_ll over `source`; yields its mount point."""
    check(os.path.exists(PASSTHROUGH_SOURCE), f"{PASSTHROUGH_SOURCE} is not installed")
    program = bench.binaries.parent / "tests" / "bench" / "passthrough_ll"
    program.parent.mkdir(parents=True, exist_ok=True)
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True
    ).stdout.split()
    build = ["cc", "-O2", "-w", PASSTHROUGH_SOURCE, "-o", str(program), *flags]
    subprocess.run(build, check=True)
    point = tempfile.mkdtemp(prefix="mosa-bench-fuse-")
    command = [str(program), "-o", f"source={source}", "-f", point]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            if os.path.ismount(point):
                break
            time.sleep(0.05)
        check(os.path.ismount(point), "passthrough_ll did not mount")
        yield pathlib.Path(point)
    finally:
        subprocess.run(["umount", "-l", point], check=False)
        server.wait(timeout=10)
        os.rmdir(point)


def names_group(bench):
    wanted = [f"{phase}-{kind}" for phase in PEERS for kind in ("1", "4", "fuse")]
    if not bench.wants(*wanted):
        return
    files = 500 if bench.quick else 3000
    phases = (["create", "stat", "open", "unlink"], ["create-small"])
    with contextlib.ExitStack() as stack:
        backing = stack.enter_context(tmpfs(GIB))
        fuse = stack.enter_context(passthrough_example(bench, backing))
        store = stack.enter_context(bench.cluster(4))
        mounts = [store.mount(host) for host in store.hosts]
        for repeat in range(bench.repeats):
            for count in (1, 4):
                for batch in phases:
                    name = f"{batch[0]}.{count}.{repeat}"
                    ours = bench.measure(mounts[:count], batch, files=files, name=name)
                    theirs = {}
                    if count == 1:
                        theirs = bench.measure([fuse], batch, files=files, name=name)
                    add_names(bench, count, ours, theirs)


def add_names(bench, count, ours, theirs):
    for phase, facts in ours.items():
        figures = PEERS[phase][1]
        bench.add(f"{phase}-{count}", facts["per_s"], figures.get(count))
        if theirs:
            bench.add(f"{phase}-fuse", facts["per_s"], theirs[phase]["per_s"])


# ---- hints


def tag_group(bench):
    rows = ("inherit", "rule", "xattr", "place")
    if not bench.wants(*(f"tag-{row}" for row in rows)):
        return
    files = 1000 if bench.quick else 10_000
    with bench.cluster(2) as store:
        mount = store.mount("h1")
        paths = {row: f"{mount}/{row}" for row in ("none", *rows)}
        for path in paths.values():
            os.mkdir(path)
        # The bench makes directories of its own below these: they inherit.
        for hint, value in (("lifetime", "temporary"), ("ack", "pessimistic")):
            set_hint(paths["inherit"], hint, value)
        set_hint(paths["place"], "pattern", "pipeline")
        store.tell("hint", "rule", "add", f"{paths['rule']}/**", "lifetime=temporary", "ack=2")
        for repeat in range(bench.repeats):
            for row in rows:
                if not bench.wants(f"tag-{row}"):
                    continue
                tag = ["--tag", "user.mosa.lifetime=temporary"] if row == "xattr" else []
                name = f"{row}.{repeat}"
                # By turns the first, since a store that holds more files makes new ones more slowly.
                order = [("none", []), (row, tag)][:: -1 if repeat % 2 else 1]
                rates = {
                    where: bench.measure([paths[where]], ["create"], files=files, name=name, more=more)
                    for where, more in order
                }
                plain, tagged = (rates[where]["create"]["per_s"] for where in ("none", row))
                bench.add(f"tag-{row}", tagged, plain)


# ---- memory


class MemoryWatch:
    """The largest own memory (PSS without what is shared memory) of processes, in MiB."""

    def __init__(self, pids):
        self.largest = {pid: 0.0 for pid in pids}
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()

    def _run(self):
        while not self.ending.wait(0.05):
            for pid in self.largest:
                self.largest[pid] = max(self.largest[pid], self._own_mib(pid))

    @staticmethod
    def _own_mib(pid):
        kib = {}
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            words = line.split()
            kib[words[0]] = int(words[1])
        return (kib["Pss:"] - kib["Pss_Shmem:"]) / 1024


def memory_group(bench):
    if not bench.wants(*(name for name in ROWS if name.startswith("memory-"))):
        return
    size = 512 * MIB if bench.quick else 4 * GIB
    with bench.cluster(2, ram="5G") as store:
        path = remote_stream(bench, store, size)
        watched = {"mount": store.pid("mount", "h1"), "storage": store.pid("storage", "h2")}
        for phase, word in (("overwrite", "write"), ("read", "read")):
            with MemoryWatch(watched.values()) as watch:
                bench.measure([path], [phase], size=size)
            for who, pid in watched.items():
                bench.add(f"memory-{who}-{word}", watch.largest[pid])


GROUPS = (
    local_group,
    plain_group,
    remote_group,
    striped_group,
    names_group,
    tag_group,
    memory_group,
)


def machine():
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )

    def said(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
        return done.stdout.strip()

    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "libfuse": said("pkg-config", "--modversion", "fuse3"),
        "commit": said("git", "rev-parse", "--short", "HEAD"),
        "load_average_before": os.getloadavg()[0],
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", required=True, help="the directory of mosa and its daemons")
    parser.add_argument("--mount-bench", help="the program, if not near --bin")
    parser.add_argument("--rows", default="*", help="names or patterns, with commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, once")
    parser.add_argument("-o", "--output", dest="out", help="a JSON file with every sample")
    parser.add_argument("--no-gate", action="store_true", help="missed targets are no failure")
    parser.add_argument("--list", action="store_true", help="print the rows and do nothing")
    arguments = parser.parse_args()
    patterns = arguments.rows.split(",")
    arguments.wanted = {
        name for name in ROWS if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    }
    if not arguments.wanted:
        parser.error(f"no row is called {arguments.rows}; --list shows all")
    return arguments


def main():
    arguments = parse()
    if arguments.list:
        for name in ROWS:
            print(f"{name}: {ROWS[name].what}")
        return 0
    reason = why_not()
    if reason:
        print(f"cannot measure: {reason}", file=sys.stderr)
        return 2
    described = machine()
    bench = Bench(arguments)
    complaints = []
    for group in GROUPS:
        try:
            group(bench)
        except (Failed, OSError, subprocess.SubprocessError) as failure:
            complaints.append(f"{group.__name__}: {failure}")
            print(f"FAILED {complaints[-1]}", file=sys.stderr, flush=True)
    summaries = bench.results.summaries()
    if arguments.out:
        document = {"machine": described, "rows": summaries, "complaints": complaints}
        pathlib.Path(arguments.out).write_text(json.dumps(document, indent=1) + "\n")
    facts = ", ".join(f"{key} {value}" for key, value in described.items())
    print(f"{facts}\n\n{to_markdown(summaries)}")
    for complaint in complaints:
        print(f"\nNot measured: {complaint}")
    missed = [s["name"] for s in summaries if s.get("reached") is False]
    return 1 if complaints or (missed and not arguments.no_gate) else 0


if __name__ == "__main__":
    sys.exit(main())
