"""Logs of requests on a real cluster of three hosts, switched on while it runs: one read is followed from the program's call
to the object and back, a write to the manager's database; a log that its daemon could not end, one that is cut, and clocks
that disagree are said, and what there is is shown.

Nothing is said of how long anything takes, only of what lies within what.
"""

import json
import os
import pathlib
import subprocess
import tempfile

import cluster
from cluster import check, wait_until

MIB = 1 << 20
FILE_MIB = 8


class Logs:
    def __init__(self, store, directory):
        self.store = store
        self.directory = pathlib.Path(directory)
        self.mosa = str(store.binaries.resolve() / "mosa")
        self.of_cluster = ["--name", store.name, "--dir", str(store.directory)]

    def run(self, *words, expect=0):
        done = subprocess.run([self.mosa, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == expect, f"mosa {words} ended with {done.returncode}, not {expect}: {done.stderr.strip()}")
        return done

    def on(self, name):
        directory = self.directory / name
        directory.mkdir()
        answer = json.loads(self.run("--json", "log", "on", *self.of_cluster, directory).stdout)
        check(all(one["on"] and one["failure"] == "" for one in answer), f"{answer}")
        return directory

    def off(self):
        answer = json.loads(self.run("--json", "log", "off", *self.of_cluster).stdout)
        check(not any(one["on"] or one["dropped"] for one in answer), f"{answer}")
        return answer

    def follow(self, files, *words):
        done = self.run("--json", "follow", *files, *words)
        return json.loads(done.stdout), done.stderr


def read_of_another_host(store, name):
    """A file that lies on h1 alone is read by h2."""
    own = cluster.placed_directory(f"{store.mount('h1')}/{name}", "node:h1")
    pathlib.Path(own, "large").write_bytes(os.urandom(FILE_MIB * MIB))
    cluster.check_location(f"{own}/large", "h1")
    check(len(pathlib.Path(store.mount("h2"), name, "large").read_bytes()) == FILE_MIB * MIB, "h2 reads something else")


def parts(path, component, name):
    return [part for part in path["parts"] if part["component"] == component and part["class"] == name]


def check_nesting(path):
    """A part lies within what asked for it, unless that went on without it or waited for somebody else's."""
    above = []
    for part in path["parts"]:
        del above[part["depth"]:]
        if above and not part["notes"]:
            whole = above[-1]
            check(whole["at_ns"] <= part["at_ns"], f"{part} begins before {whole}")
        check(0 <= part["own_ns"] <= part["took_ns"], f"{part}")
        above.append(part)


def read_paths(logs, files):
    reads, _ = logs.follow(files, "--host", "h2", "--list", 1000)
    check(reads and all(one["class"] == "fuse.read" and one["bytes"] > 0 for one in reads), f"reads: {reads}")
    took = [one["took_ns"] for one in reads]
    check(took == sorted(took, reverse=True), "the longest first")
    return [logs.follow(files, "--trace", one["trace"])[0] for one in reads]


def check_read(logs, directory):
    """h2's read, what its mount asked of h1, what h1's node did, and the object's part of it."""
    files = sorted(directory.glob("*.requests"))
    check(len(files) == 7 and all(os.stat(file).st_mode & 0o777 == 0o600 for file in files), f"{files}")
    paths = read_paths(logs, files)
    whole = [p for p in paths if parts(p, "mount", "node.read") and parts(p, "storage", "read") and parts(p, "storage", "read.object")]
    check(whole, f"no read is whole: {paths}")
    for path in paths:
        check_nesting(path)
        late = [note for note in path["notes"] if "worked that long after its answer" in note]
        check(path["notes"] == late and path["parts"][0]["host"] == "h2", f"{path}")
    path = whole[0]
    asked, served = parts(path, "mount", "node.read")[0], parts(path, "storage", "read")[0]
    check(asked["peer"] == "h1" and asked["host"] == "h2" and served["host"] == "h1", f"{asked} {served}")
    check(any("the network to h1, and connections" in path["shares_ns"] for path in whole), f"{[p['shares_ns'] for p in whole]}")
    text = logs.run("follow", *files, "--trace", path["trace"]).stdout
    check("node.read of h1" in text and "read.object" in text and "ms: the mount of h2" in text, text)
    return files, path


def check_change(logs, files):
    """The making of h1's file: the mount, the manager, its decision and its database."""
    answer, _ = logs.follow(files, "--class", "", "--list", 100000)
    found = []
    for one in answer:
        if one["class"].startswith("fuse.") and one["class"] != "fuse.read":
            path, _ = logs.follow(files, "--trace", one["trace"])
            if parts(path, "manager", "log"):
                found.append(path)
        if len(found) == 3:
            break
    check(found, "no request of the kernel's reached the manager's database")
    check(any(p["class"].endswith(".core") for p in found[0]["parts"]), f"{found[0]}")


def check_faults(logs, files, path):
    """A file that is cut, one that is missing, one that is no log."""
    storage = next(file for file in files if file.name.startswith("storage-h1"))
    others = [file for file in files if file != storage]
    cut = logs.directory / "cut.requests"
    cut.write_bytes(storage.read_bytes()[:-50])
    _, said = logs.follow([*others, cut], "--trace", path["trace"])
    check(f"{cut}: it ends within a block" in said and said.count("\n") == 1, said)
    alone, _ = logs.follow(others, "--trace", path["trace"])
    check(not parts(alone, "storage", "read"), "a node whose log is not there is in the path")
    check(any(part["own_is"] == "h1 and the network to it" for part in alone["parts"]), f"{alone['parts']}")
    text = logs.directory / "text"
    text.write_text("hello")
    done = logs.run("follow", text, expect=2)
    check("is not a request log" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    done = logs.run("follow", *files, "--trace", "1234", expect=3)
    check("no trace 1234" in done.stderr, done.stderr)


def check_killed(logs):
    """A daemon that is killed leaves what it has written; the others' logs go on."""
    store = logs.store
    directory = logs.on("killed")
    read_of_another_host(store, "second")
    its = next(directory.glob("storage-h1-*"))
    size = its.stat().st_size

    def has_grown():
        pathlib.Path(store.mount("h2"), "second", "large").stat()
        return its.stat().st_size > max(size, 300)

    wait_until(has_grown, 30, "the log of h1's node has requests")
    command = store.kill("storage", "h1")
    store.start("storage", "h1", command)
    logs.off()
    done = logs.run("follow", *sorted(directory.glob("*.requests")), "--class", "", "--list", 3)
    check(f"{its}: it has no end" in done.stderr or f"{its}: it ends within" in done.stderr, done.stderr)


def test(arguments):
    with cluster.Cluster(arguments.bin, 3) as store, tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        logs = Logs(store, name)
        check(len(logs.off()) == 7, "where none is written there is nothing to end")
        logs.run("log", "on", "relative", *logs.of_cluster, expect=2)
        logs.run("log", "on", "/" + 5000 * "a", *logs.of_cluster, expect=2)
        done = logs.run("log", "on", "/nonexistent", *logs.of_cluster, expect=3)
        check("cannot create /nonexistent/manager" in done.stderr, done.stderr)
        check(done.stdout.count("\tfailed\t") == 7 and "\toff\t" not in done.stdout, done.stdout)
        directory = logs.on("first")
        read_of_another_host(store, "first")
        logs.run("log", "on", logs.directory, *logs.of_cluster, expect=3)
        answer = logs.off()
        check(all(one["records"] > 0 for one in answer if one["host"] in ("h1", "h2")), f"{answer}")
        files, path = check_read(logs, directory)
        check_change(logs, files)
        check_faults(logs, files, path)
        check_killed(logs)


if __name__ == "__main__":
    cluster.main(test, limit_s=120, description=__doc__)
