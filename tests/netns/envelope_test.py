"""`mosa envelope` on a real cluster: clients on its hosts, the same beside a directory of this machine, and what was traced
there held against it; stores that are not there, too small or not the same are named; nothing is left behind.

    envelope_test.py --bin DIRECTORY
"""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

import cluster
from cluster import check

TINY = ["--sizes", "1K,1M", "--scale", "0.002", "--bytes-max", "4M", "--repeats", "2"]
METRICS = ["create", "open", "1-to-1 read", "N-to-1 read", "write"]


class Envelope:
    def __init__(self, store, directory):
        self.store = store
        self.directory = pathlib.Path(directory)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("MOSA_")}

    def run(self, out, *flags):
        command = [str(self.store.binaries.resolve() / "mosa"), "envelope", "run", *map(str, flags), "--output", f"{out}.json"]
        return subprocess.run(command, cwd=self.directory, env=self.environment, text=True, capture_output=True, timeout=60, check=False)

    def mosa(self, *words, cwd=None):
        command = [str(self.store.binaries.resolve() / "mosa"), *map(str, words)]
        done = subprocess.run(command, cwd=cwd or self.directory, env=self.environment, text=True, capture_output=True, timeout=60, check=False)
        check(done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def good(self, out, *flags):
        done = self.run(out, *flags)
        check(done.returncode == 0, f"{flags} ended with {done.returncode}: {done.stderr.strip()}")
        return json.loads((self.directory / f"{out}.json").read_text(encoding="utf-8"))

    def refused(self, expected, code, *flags):
        done = self.run("never", *flags)
        lines = done.stderr.strip().split("\n")
        check(done.returncode == code and len(lines) == 1 and expected in lines[0], f"{flags}: {done.returncode}, not {code}: {done.stderr}")

    def check_nothing_is_left(self, *places):
        for place in [*map(self.store.mount, self.store.hosts), *places]:
            left = [name for name in os.listdir(place) if "envelope" in name]
            check(not left, f"left in {place}: {left}")


def rates(result, system):
    return {(c["operation"], c["size_bytes"], c["clients"]): c["operations_per_second"]["median"]
            for c in result["cells"] if c["system"] == system}


def test_cluster(envelope):
    store = envelope.store
    result = envelope.good("cluster", "--cluster", store.name, "--dir", store.directory, "--clients", "1,3", *TINY)
    check(result["outcome"] == "done", result["outcome"])
    hosts = result["configuration"]["systems"][0]["hosts"]
    check([h["name"] for h in hosts] == store.hosts and all("fuse" in h["file_system"] for h in hosts), f"{hosts}")
    have = rates(result, "mosa")
    check(len(have) == 2 * 2 + 3 * 2 * 2 and {key[0] for key in have} == set(METRICS), f"{sorted(have)}")
    check(all(rate > 0 for rate in have.values()), f"{have}")
    envelope.check_nothing_is_left()


def test_beside(envelope, place):
    """Mounts by their paths, and a store of this machine, in turns."""
    store = envelope.store
    mounts = store.mount("h1").replace("/h1/", "/{host}/")
    result = envelope.good("beside", f"mosa={mounts}", f"tmpfs={place}", "--hosts", "h1,h2", "--clients", "2", *TINY)
    check(len(rates(result, "mosa")) == len(rates(result, "tmpfs")) == 2 + 3 * 2, f"{result['cells']}")
    envelope.check_nothing_is_left(place)
    envelope.refused("host h9 has nothing at", 5, mounts, "--hosts", "h1,h9", "--clients", "2", *TINY)
    os.mkdir(pathlib.Path(place) / "h2")
    other = f"{envelope.directory}/{{host}}"
    os.symlink(store.mount("h1"), envelope.directory / "h1")
    os.symlink(place, envelope.directory / "h2")
    envelope.refused("host h2 does not see in", 3, other, "--hosts", "h1,h2", "--clients", "2", *TINY)
    envelope.check_nothing_is_left(place)


def test_traced(envelope):
    """A program nobody has described, on the envelope that was measured before."""
    mount = pathlib.Path(envelope.store.mount("h1"))
    (mount / "in").write_bytes(os.urandom(300000))
    envelope.mosa("trace", "run", "--mount", mount, "-o", envelope.directory / "traced", "--", "cp", "in", "out", cwd=mount)
    traces = list((envelope.directory / "traced").glob("*.trace"))
    envelope.mosa("trace", "workload", *traces, "-o", "cp.json")
    files = ["--workload", "cp.json", "--operations", "cp.operations.json"]
    stage = json.loads(envelope.mosa("--json", "envelope", "profile", *files))["stages"][0]
    check(stage["name"] == "cp" and stage["calls_known"] and stage["bytes_read"] == stage["bytes_written"] == 300000, f"{stage}")
    check((stage["files_read"], stage["files_written"]) == (1, 1), f"{stage}")
    said = json.loads(envelope.mosa("--json", "envelope", "classify", "--envelope", "cluster.json", *files, "--trace", *traces))
    phases = [said["stages"][0][phase] for phase in ("input", "output")]
    verdict = said["verdict"]
    check(verdict["compared"] == 2 and set(verdict["ways"]) == {"coarse", "fine"}, f"{verdict}")
    check(sum(way["nearest"] for way in verdict["ways"].values()) == 2, f"{verdict}")
    check(said["system"] == "mosa" and all(p["coarse_s"] > 0 and p["fine_s"] > 0 and p["measured_s"] > 0 for p in phases), f"{said}")


@contextlib.contextmanager
def small_store(directory):
    place = pathlib.Path(directory) / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "small", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_room(envelope):
    with small_store(envelope.directory) as place:
        envelope.refused("has 2.0 MiB free, but the files of one cell take 4.0 MiB", 4, place, "--clients", "1", *TINY)
        check(not os.listdir(place), f"left: {os.listdir(place)}")


def test(arguments):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place, tempfile.TemporaryDirectory(dir="/var/tmp") as directory, \
            cluster.Cluster(arguments.bin, 2, ram="128M") as store:
        envelope = Envelope(store, directory)
        for part in (lambda: test_room(envelope), lambda: test_cluster(envelope), lambda: test_traced(envelope), lambda: test_beside(envelope, place)):
            begin = time.monotonic()
            part()
            print(f"{time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    cluster.main(test, limit_s=150, description=__doc__)
