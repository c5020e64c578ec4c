"""`mosa capacity` on a real cluster, by real fio: seeds, checks and mixes, gone on with, predicted and drawn; hosts without fio or
with others, stores that are not there or too small, a fio that dies and Ctrl-C are named, and leave nothing behind.

    capacity_test.py --bin DIRECTORY
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cluster
from cluster import check

TINY = ["--sizes", "4K,64K", "--jobs", "2", "--file-size", "1M", "--seconds", "0.1", "--repeats", "1"]


class Capacity:
    def __init__(self, store, directory):
        self.store = store
        self.directory = pathlib.Path(directory)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("MOSA_")}
        self.mine = ["--cluster", store.name, "--dir", store.directory]

    def start(self, *words, path=None):
        command = [str(self.store.binaries.resolve() / "mosa"), *map(str, words)]
        environment = {**self.environment, **({"PATH": str(path)} if path else {})}
        return subprocess.Popen(command, cwd=self.directory, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def mosa(self, *words, **options):
        child = self.start(*words, **options)
        child.output, child.errors = child.communicate(timeout=60)
        return child

    def good(self, *words):
        done = self.mosa(*words)
        check(done.returncode == 0, f"{words} ended with {done.returncode}: {done.errors.strip()}")
        return done.output

    def run(self, out, *flags, tiny=tuple(TINY)):
        self.good("capacity", "run", *flags, *tiny, "-o", out)
        return json.loads((self.directory / out).read_text(encoding="utf-8"))

    def refused(self, expected, code, *flags, tiny=tuple(TINY), path=None):
        done = self.mosa("capacity", "run", *flags, *tiny, "-o", "never.json", path=path)
        lines = done.errors.strip().split("\n")
        check(done.returncode == code and len(lines) == 1 and expected in lines[0], f"{flags}: {done.returncode}, not {code}: {done.errors}")
        check(not (self.directory / "never.json").exists(), "a result without samples")
        self.check_nothing_is_left()

    def check_nothing_is_left(self, *places):
        for place in [*map(self.store.mount, self.store.hosts), *places]:
            left = [name for name in os.listdir(place) if "capacity" in name]
            check(not left, f"left in {place}: {left}")


def loads_of(result):
    return {(load["share_of"], *((p["size_bytes"], p["read_percent"], p["share_percent"]) for p in load["parts"])) for load in result["loads"]}


def test_cluster(capacity):
    """Seeds; the same command with --check goes on with them."""
    seeds = capacity.run("cluster.json", *capacity.mine)
    check(seeds["outcome"] == "done" and len(seeds["loads"]) == 4, f"{seeds['loads']}")
    check(all("fuse" in h["file_system"] for h in seeds["configuration"]["store"]["hosts"]), f"{seeds['configuration']}")
    mix = "operations=4K:50%r:0.5,64K:100%r:0.5"
    whole = capacity.run("cluster.json", *capacity.mine, "--check", "--ratios", "50", "--mix", mix, "--mix", "4K:100%r:0.25,64K:0%r:0.75")
    check(len(loads_of(whole)) == 4 + 2 + 2, f"{loads_of(whole)}")
    before = {json.dumps(load) for load in seeds["loads"]}
    check(before < {json.dumps(load) for load in whole["loads"]}, "samples that were there were taken again")
    half = next(load for load in whole["loads"] if load["parts"] == [{"size_bytes": 4096, "read_percent": 50, "share_percent": 100}])
    check(half["reads_per_second"][0] > 0 and half["writes_per_second"][0] > 0, f"{half}")
    capacity.check_nothing_is_left()
    said = json.loads(capacity.good("--json", "capacity", "show", "cluster.json"))
    check(len(said["sizes"]) == 2 and len(said["checks"]) == 4 and all(c["error_percent"] >= 0 for c in said["checks"]), f"{said}")
    check(said["sizes"][0]["verdict"] != "not checked", f"{said['sizes']}")
    predicted = json.loads(capacity.good("--json", "capacity", "predict", "cluster.json", "--size", "4K", "--read", "50"))
    stated = next(c for c in said["checks"] if c["load"] == "4K:50%r")
    check(abs(predicted[0]["operations_per_second"] - stated["estimated_per_second"]["median"]) < 1e-6, f"{predicted} {stated}")
    whole["configuration"]["writes"] = "stored"
    (capacity.directory / "old.json").write_text(json.dumps(whole), encoding="utf-8")
    old = capacity.mosa("capacity", "run", *capacity.mine, *TINY, "-o", "old.json")
    check(old.returncode == 3 and 'writes is "stored" there and "O_DSYNC" here' in old.errors, old.errors)
    capacity.good("capacity", "plot", "cluster.json", "figures")
    drawn = sorted(p.name for p in (capacity.directory / "figures").iterdir())
    check(drawn == ["factors.svg", "mixes.svg", "ratios.svg"], f"{drawn}")


def test_directory(capacity, place):
    """Any directory, through its page cache; another one's results are not gone on with."""
    result = capacity.run("place.json", place, "--pages", "cached", "--writes", "taken", "--mix", "4K:0%r:0.5,64K:0%r:0.5")
    check(len(result["loads"]) == 5 and result["configuration"]["pages"] == "cached", f"{result}")
    capacity.check_nothing_is_left(place)
    done = capacity.mosa("capacity", "run", place, "--writes", "taken", *TINY, "-o", "place.json")
    check(done.returncode == 3 and 'pages is "cached" there' in done.errors, done.errors)


def test_only_writes_are_synced(capacity):
    """Each write is committed, by the mount itself past the page cache; reads among them cost what reads cost."""

    def requests():
        daemons = json.loads(capacity.good("--json", "residence", "--name", capacity.store.name, "--dir", capacity.store.directory, "--top", "0"))["daemons"]
        counts = dict.fromkeys(["fuse.read", "fuse.write", "fuse.fsync", "manager.commit"], 0)
        for row in (row for daemon in daemons for row in daemon["requests"] if row["class"] in counts):
            counts[row["class"]] += row["count"]
        return counts

    before = requests()
    capacity.run("synced.json", *capacity.mine, "--mix", "4K:90%r", tiny=["--sizes", "4K", *TINY[2:]])
    did = {kind: count - before[kind] for kind, count in requests().items()}
    files = 4
    check(did["fuse.fsync"] <= files and did["manager.commit"] >= did["fuse.write"] > 0, f"{did}")


@contextlib.contextmanager
def small_store(directory, size="1M"):
    place = pathlib.Path(directory) / f"small{size}"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "small", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fake_fio(directory, name, script):
    place = directory / name
    place.mkdir()
    (place / "fio").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (place / "fio").chmod(0o755)
    return place


def test_refusals(capacity):
    mine = capacity.mine
    empty = capacity.directory / "empty"
    empty.mkdir()
    capacity.refused("host h1: fio is not in PATH", 3, *mine, path=empty)
    capacity.refused("has fio version 'fio-2.21'", 3, *mine, path=fake_fio(capacity.directory, "old", "echo fio-2.21"))
    netns = '[ "$(stat -Lc %i /proc/self/ns/net)" = "$(stat -Lc %i /run/netns/NAME)" ]'.replace("NAME", capacity.store.host("h2")["net_namespace"])
    other = fake_fio(capacity.directory, "other", f"PATH=/usr/bin:/bin; if {netns}; then echo fio-3.99; else echo fio-3.33; fi")
    capacity.refused("host h1 has fio-3.33 and host h2 has fio-3.99", 3, *mine, path=other)
    dying = f'PATH=/usr/bin:/bin; case "$*" in --version) echo fio-3.33;; *randread*) {netns} && kill -9 $$; exec fio "$@";; *) exec fio "$@";; esac'
    capacity.refused("host h2: fio was killed by signal 9", 5, *mine, path=fake_fio(capacity.directory, "dying", dying))
    mounts = capacity.store.mount("h1").replace("/h1/", "/{host}/")
    capacity.refused("host h9 has nothing at", 5, mounts, "--hosts", "h1,h9")
    capacity.refused("is not one of --sizes", 2, *mine, "--mix", "4K:50%r:0.5,8K:50%r:0.5")
    capacity.refused("give a multiple of 1M", 2, *mine, tiny=[word.replace("1M", "1540K") for word in TINY])
    capacity.refused("of --budget before the first sample", 3, *mine, "--budget", "0.001")
    capacity.refused("is not a whole number of clients", 2, *mine, "--mix", "4K:50%r:0.33,64K:50%r:0.67")
    with small_store(capacity.directory) as place:
        capacity.refused("has 1.0 MiB free, but the files of 2 clients take 2.0 MiB", 4, place)
        check(not os.listdir(place), f"left: {os.listdir(place)}")


def test_killed(capacity):
    """What a measurement that was killed has left does not stand in the way of the same command."""
    with small_store(capacity.directory, "3M") as place:
        child = capacity.start("capacity", "run", place, "--sizes", "4K", *[word.replace("0.1", "60") for word in TINY[2:]], "-o", "killed.json")
        cluster.wait_until(lambda: len(list(place.glob("*capacity*/*"))) == 2, 30, "the files")
        child.kill()
        child.communicate()
        check(list(place.glob("*capacity*/*")), "nothing was left")
        capacity.run("killed.json", place, tiny=["--sizes", "4K", *TINY[2:]])
        check(not os.listdir(place), f"left: {os.listdir(place)}")


def test_interrupt(capacity):
    """In the middle of a sample that would last for a minute."""
    flags = [word.replace("0.1", "60") for word in TINY]
    child = capacity.start("capacity", "run", *capacity.mine, *flags, "-o", "interrupted.json")
    mount = pathlib.Path(capacity.store.mount("h1"))
    measuring = f"{capacity.store.name}/h2/mount/.mosa-capacity-"

    def at_it():
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if words[0] == b"fio" and b"--rw=randread" in words and any(measuring.encode() in word for word in words):
                    return int(path.parent.name)
        return None

    fio = cluster.wait_until(at_it, 30, "fio's beginning on h2")
    check(any("capacity" in name for name in os.listdir(mount)), "there are no files")
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    errors = child.communicate(timeout=50)[1]
    check(child.returncode == 130 and "interrupted" in errors, f"{child.returncode}: {errors}")
    check(cluster.start_ticks(fio) == 0, f"fio still runs {time.monotonic() - begin:.1f} s after")
    capacity.check_nothing_is_left()


def test(arguments):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place, tempfile.TemporaryDirectory(dir="/var/tmp") as directory, \
            cluster.Cluster(arguments.bin, 2, ram="128M") as store:
        capacity = Capacity(store, directory)
        for part in (lambda: test_refusals(capacity), lambda: test_cluster(capacity), lambda: test_directory(capacity, place),
                     lambda: test_only_writes_are_synced(capacity), lambda: test_killed(capacity), lambda: test_interrupt(capacity)):
            begin = time.monotonic()
            part()
            print(f"{time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    if shutil.which("fio") is None:
        print("skipped: fio is not installed (package 'fio')")
        sys.exit(cluster.SKIPPED)
    cluster.main(test, limit_s=150, description=__doc__)
