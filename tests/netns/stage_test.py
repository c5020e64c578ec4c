"""Trees are staged in and out whole, by all hosts; what is to be kept is not torn down unstaged.

Three hosts and a directory of this machine as backend. Faults are real: processes that are killed
in the middle, a backend that is full, a node that takes a file's bytes with it.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import cluster

MIB = 1 << 20
PREFIX = ".mosa-stage-"


class Store:
    def __init__(self, store, backend):
        self.store, self.backend = store, backend
        self.mount = {name: store.mount(name) for name in store.hosts}

    def command(self, *words):
        command = [self.store.binaries / "mosa", *words]
        return [*command, "--name", self.store.name, "--dir", self.store.directory]

    def mosa(self, *words, code=0):
        """Runs `mosa` and returns (standard output, standard error)."""
        done = subprocess.run(self.command(*words), capture_output=True, timeout=120)
        error = done.stderr.decode(errors="replace")
        text = " ".join(os.fsdecode(word) for word in words)
        cluster.check(
            done.returncode == code, f"{text}: exit code {done.returncode}, not {code}: {error}"
        )
        return done.stdout, error

    def stage(self, *words, code=0):
        return json.loads(self.mosa("stage", *words, "--json", code=code)[0])

    def begin(self, *words, **options):
        """Starts `mosa stage`."""
        pipe = subprocess.PIPE
        return subprocess.Popen(self.command("stage", *words), stdout=pipe, stderr=pipe, **options)

    def refused(self, *words, code, saying):
        error = self.mosa(*words, code=code)[1]
        for part in saying:
            cluster.check(part in error, f"'{error.strip()}' does not say '{part}'")


def write(path, text, *, mode=0o644, mtime_ns=None):
    with open(path, "wb") as file:
        file.write(text)
    os.chmod(path, mode)
    if mtime_ns:
        os.utime(path, ns=(mtime_ns, mtime_ns))


def bytes_of(number, size):
    return hashlib.shake_128(b"%d" % number).digest(size)


def make_tree(top):
    """Everything that a tree can hold."""
    top = os.fsencode(top)
    os.makedirs(top + b"/deep/er/and deeper")
    os.mkdir(top + b"/empty", 0o500)
    write(top + b"/nothing", b"", mtime_ns=1_500_000_000_123_456_789)
    write(top + b"/odd \xff\xfe\n*'\"name", b"odd", mode=0o400)
    write(top + b"/" + b"n" * 255, b"long")
    write(top + b"/deep/er/and deeper/tool", b"#!/bin/sh\necho ran\n", mode=0o755)
    for number in range(12):
        size = (number % 4) * MIB + number * 1001 + 1
        write(top + b"/deep/f%d" % number, bytes_of(number, size), mtime_ns=10**18 + number)
    with open(top + b"/sparse", "wb") as file:
        file.seek(3 * MIB)
        file.write(b"in the middle")
        file.truncate(9 * MIB)
    os.symlink(b"deep/f1", top + b"/link")
    os.symlink(b"no/where\xff", top + b"/dangling")
    os.symlink(b"deep", top + b"/directory link")
    os.utime(top + b"/deep/er", ns=(10**17, 10**17 + 7))


def facts(top):
    """What is at and below `top`, by path."""
    top = os.fsencode(top)
    found = {}
    for directory, names, files in os.walk(top):
        for name in [b".", *names, *files]:
            path = os.path.normpath(os.path.join(directory, name))
            status = os.lstat(path)
            mode = status.st_mode
            if os.path.islink(path):
                what = os.readlink(path)
            elif os.path.isdir(path):
                what = "directory"
            else:
                what = hashlib.sha256(pathlib.Path(os.fsdecode(path)).read_bytes()).digest()
            found[os.path.relpath(path, top)] = (what, mode, status.st_mtime_ns)
    return found


def check_equal(source, target, what, *, top=True):
    """`top`: they themselves too, not only what is below them."""
    wanted, have = facts(source), facts(target)
    if not top:
        del wanted[b"."], have[b"."]
    for path in sorted(wanted.keys() | have.keys()):
        cluster.check(
            wanted.get(path) == have.get(path),
            f"{what}: {path} is {have.get(path)}, must be {wanted.get(path)}",
        )


def leftovers(top):
    return [p for p in pathlib.Path(top).rglob(PREFIX + "*")]


def end(process, code=0):
    """Waits for it; returns what it says on standard error."""
    error = process.communicate(timeout=60)[1].decode(errors="replace")
    has = process.returncode
    cluster.check(has == code, f"ended with {has}, not {code}: {error}")
    return error


def catches(pid, number):
    """Whether the process has said what it does with the signal."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1 == 1


def elsewhere(store, script):
    """Options for a host that is reached by a command; `script` runs its workers ("$1")."""
    program = f"{store.backend}/elsewhere-{time.monotonic_ns()}"
    write(
        program,
        f"""#!/bin/bash
if [[ $1 != *"stage worker"* ]]; then exec sh -c "$1"; fi
echo Welcome to this machine
{script}
""".encode(),
        mode=0o755,
    )
    return ["--mount", store.mount["h1"], "--hosts", "one", "--exec", program]


def await_path(path):
    cluster.wait_until(lambda: os.path.exists(path), 20, path)


def location(path):
    return os.getxattr(path, "user.mosa.location").decode().split(",")


def check_in(store):
    source = f"{store.backend}/input"
    make_tree(source)
    manifest = f"{store.backend}/manifest"
    here = store.mount["h1"]
    report = store.stage("in", source, here, "--hint", "placement=local", "--manifest", manifest)
    check_equal(source, f"{here}/input", "staged in")
    check_equal(source, f"{store.mount['h2']}/input", "staged in, from h2")
    cluster.check(not report["failed"] and not report["skipped"], f"staged in: {report}")
    shares = {host["host"]: host["bytes"] for host in report["hosts"]}
    cluster.check(min(shares[h] for h in store.mount) > MIB, f"hosts did not share: {shares}")
    holders = {node for n in range(12) for node in location(f"{here}/input/deep/f{n}")}
    cluster.check(holders == set(store.mount), f"copied by all, but only {holders} hold something")
    lines = [json.loads(line) for line in open(manifest, encoding="utf-8")]
    cluster.check(len(lines) == report["files"], f"{len(lines)} lines for {report['files']} files")
    ran = store.store.exec("h3", f"{store.mount['h3']}/input/deep/er/and deeper/tool")
    cluster.check(ran.stdout == "ran\n", f"a staged program says {ran.stdout!r}, {ran.stderr!r}")
    again = store.stage("in", source, here)
    cluster.check(again["skipped"] == again["files"] == report["files"], f"again: {again}")
    cluster.check(not leftovers(here), "temporaries are left in the store")


def check_hints_in(store):
    """A file gets the hints of its directory and of its path, although it is made under another."""
    store.mosa("hint", "rule", "add", f"{store.mount['h1']}/ruled/*.there", "placement=node:h2")
    source = f"{store.backend}/ruled"
    os.mkdir(source)
    for name in ("a.there", "b.here"):
        write(f"{source}/{name}", bytes_of(1, 2 * MIB))
    kept = cluster.placed_directory(f"{store.mount['h1']}/ruled", "node:h3")
    report = store.stage("in", f"{source}/.", kept)
    cluster.check(location(f"{kept}/a.there") == ["h2"], "the rule does not hold")
    cluster.check(location(f"{kept}/b.here") == ["h3"], "the directory's hint does not hold")
    copied = {host["host"]: host["files"] for host in report["hosts"]}
    cluster.check(copied.get("h2", 0) >= 1, f"what goes to h2 was copied by {copied}")
    # What is asked for is stronger than a rule, and than where the directory would have it.
    store.mosa("hint", "rule", "add", f"{store.mount['h1']}/asked/*.there", "replicas=1")
    kept = cluster.placed_directory(f"{store.mount['h1']}/asked", "local")
    store.stage("in", f"{source}/a.there", kept, "--hint", "pattern=broadcast:2")
    copies = os.getxattr(f"{kept}/a.there", "user.mosa.replicas")
    cluster.check(copies == b"2", f"asked for 2 copies, the rule made it {copies}")
    store.stage("in", f"{source}/b.here", kept, "--hint", "placement=node:h2")
    cluster.check(location(f"{kept}/b.here") == ["h2"], "the directory was stronger")
    report = store.stage("in", f"{source}/b.here", kept, "--hint", "lifetime=temporary")
    hint = os.getxattr(f"{kept}/b.here", "user.mosa.lifetime")
    cluster.check(report["skipped"] == 1 and hint == b"temporary", f"{hint}: {report}")
    report = store.stage("in", f"{source}/b.here", kept, "--hint", "placement=node:h3")
    cluster.check(location(f"{kept}/b.here") == ["h3"], f"what was there stayed there: {report}")


def check_leftovers_in(store):
    """What a run that was killed leaves in the store goes with the next one, by any mount."""
    source = f"{store.backend}/big"
    os.mkdir(source)
    write(f"{source}/file", bytes_of(7, MIB) * 64)
    begun = store.begin("in", f"{source}/.", f"{store.mount['h1']}/big", "--jobs", "1")
    cluster.wait_until(lambda: leftovers(f"{store.mount['h2']}/big"), 20, "a temporary")
    begun.kill()
    begun.communicate()
    cluster.check(leftovers(f"{store.mount['h2']}/big"), "it was copied before it was killed")
    error = store.mosa("stage", "out", f"{store.mount['h1']}/big", f"{store.backend}/out of big")[1]
    cluster.check(f"big/{PREFIX}" in error, f"'{error}' does not name what is passed over")
    store.stage("in", f"{source}/.", f"{store.mount['h3']}/big")
    have = pathlib.Path(f"{store.mount['h1']}/big/file").read_bytes()
    cluster.check(have == bytes_of(7, MIB) * 64, "staged in after all, with other bytes")
    left = leftovers(f"{store.mount['h1']}/big")
    cluster.check(not left, f"left: {left}")
    error = store.mosa(
        "stage", "in", f"{source}/.", f"{store.mount['h1']}/big", "--manifest", "/dev/full", code=4
    )[1]
    cluster.check("/dev/full" in error, f"'{error.strip()}' does not name the manifest")


def make_results(store):
    """Results on all hosts, some of them of mounts that have told nobody; returns their number."""
    here = store.mount["h1"]
    os.mkdir(f"{here}/results")
    cluster.set_hint(f"{here}/results", "lifetime", "keep")
    for name, mount in store.mount.items():
        os.mkdir(f"{mount}/results/{name}")
        for number in range(10):
            write(f"{mount}/results/{name}/{number}", bytes_of(number, number * 50_001))
    write(f"{here}/results/large", bytes_of(99, 20 * MIB))
    return 31


def check_refusal(store, files):
    store.refused(
        "cluster", "down", code=3,
        saying=[f"{files} files", "MiB", "/results/", "mosa stage out --unstaged", "--discard"],
    )  # fmt: skip
    again = f"mosa stage out --unstaged --name {store.store.name} --dir {store.store.directory} DIR"
    store.refused("stage", "check", code=3, saying=[f"{files} files", again])
    error = store.mosa("cluster", "down", "--dry-run", "--stage-out", f"{store.backend}/x")[1]
    cluster.check(f"Would copy {files} files" in error, f"a dry run says '{error}'")
    cluster.check(os.path.exists(f"{store.mount['h1']}/results/large"), "refused, and ended it")
    store.refused(
        "stage", "out", f"{store.mount['h1']}/results", f"{store.mount['h2']}/copy", code=2,
        saying=["/copy is on a Mosa mount itself"],
    )  # fmt: skip
    os.symlink(f"{store.mount['h2']}/results", f"{store.backend}/into the store")
    os.symlink(store.backend, f"{store.mount['h1']}/out of the store")
    store.refused(
        "stage", "out", f"{store.mount['h1']}/results", f"{store.backend}/into the store", code=2,
        saying=["/results is on a Mosa mount itself"],
    )  # fmt: skip
    store.refused(
        "stage", "in", f"{store.backend}/ruled", f"{store.mount['h1']}/out of the store", code=2,
        saying=[f"{store.backend} is not on a Mosa mount"],
    )  # fmt: skip
    os.unlink(f"{store.mount['h1']}/out of the store")
    store.refused(
        "stage", "in", f"{store.backend}/none", store.mount["h1"], code=3, saying=["/none"]
    )


def check_out(store, files):
    target = f"{store.backend}/out/of/the store"
    report = store.stage("out", f"{store.mount['h2']}/results", target)
    cluster.check(report["staged"] == files == report["files"], f"staged out: {report}")
    check_equal(f"{store.mount['h1']}/results", f"{target}/results", "staged out")
    copied = {host["host"] for host in report["hosts"]}
    cluster.check(copied == set(store.mount), f"only {copied} copied")
    store.mosa("stage", "check")
    # The manager remembers, also when it is killed.
    command = store.store.kill("manager", "h0")
    store.refused("cluster", "down", code=3, saying=["its manager has ended", "--discard"])
    store.store.start("manager", "h0", command)
    store.mosa("stage", "check")
    store.mosa("cluster", "down", "--dry-run")
    # Ctrl-C while the manager is asked.
    manager = store.store.pid("manager", "h0")
    cluster.stop(manager)
    down = subprocess.Popen(store.command("cluster", "down"), stderr=subprocess.PIPE)
    cluster.wait_until(lambda: catches(down.pid, signal.SIGINT), 10, "its handling of signals")
    time.sleep(0.5)
    down.send_signal(signal.SIGINT)
    os.kill(manager, signal.SIGCONT)
    cluster.check("is unchanged" in end(down, 128 + signal.SIGINT), "interrupted")
    cluster.check(store.store.state_path.exists(), "interrupted, and ended it")


def check_changes(store):
    path = f"{store.mount['h3']}/results/large"
    source, target = f"{store.mount['h1']}/results", f"{store.backend}/out/of/the store"
    with open(path, "r+b") as file:
        file.write(b"new")
    store.refused("stage", "check", code=3, saying=["a file of lifetime=keep", "/results/large"])
    report = store.stage("out", source, target)
    cluster.check(report["skipped"] == report["files"] - 1, f"one had changed: {report}")
    store.mosa("stage", "check")
    # One of two descriptors is closed: the manager hears of an end, and its mount knows better.
    path = f"{store.mount['h3']}/results/fresh"
    first = os.open(path, os.O_WRONLY | os.O_CREAT)
    second = os.dup(first)
    os.write(first, b"begin")
    os.close(first)
    report = store.stage("out", source, target, code=5)
    cluster.check(len(report["failed"]) == 1, f"one is open for writing: {report['failed']}")
    cluster.check(report["failed"][0]["path"].endswith("/fresh"), f"not the one: {report}")
    os.write(second, b"end")
    os.close(second)
    store.refused("stage", "check", code=3, saying=["a file of lifetime=keep", "/results/fresh"])
    store.stage("out", source, target)
    store.mosa("stage", "check")
    check_equal(source, f"{target}/results", "staged out again")


def check_same_looks(store):
    """Another file under a name, and other bytes of the same size and time, are told apart."""
    here, target = store.mount["h1"], f"{store.backend}/out/of/the store"
    path = f"{here}/results/large"
    looks = os.stat(path)
    with open(path, "r+b") as file:
        file.write(b"other bytes")
    os.utime(path, ns=(looks.st_atime_ns, looks.st_mtime_ns))
    store.stage("out", f"{here}/results", target)
    check_equal(f"{here}/results", f"{target}/results", "staged out again")
    store.mosa("stage", "check")
    # A log is rotated when it has been found and is not yet copied.
    begun, go = f"{store.backend}/begun", f"{store.backend}/go"
    wait = f"touch {begun}; until [ -e {go} ]; do sleep 0.02; done"
    host = elsewhere(store, f'{wait}; exec sh -c "$1"')
    write(f"{here}/results/log", b"first")
    manifest = f"{store.backend}/log manifest"
    stage = store.begin(
        "out", f"{here}/results/log", f"{target}/results", *host, "--manifest", manifest
    )
    await_path(begun)
    os.rename(f"{here}/results/log", f"{here}/results/log.1")
    write(f"{here}/results/log", b"second")
    write(go, b"")
    cluster.check("gave way to another file" in end(stage, 5), "a log is rotated")
    cluster.check(os.path.getsize(manifest) == 0, "the manifest has what is not staged")
    store.refused("stage", "check", code=3, saying=["2 files", "/results/log.1"])
    store.stage("out", f"{here}/results", target)
    check_equal(f"{here}/results", f"{target}/results", "staged out with its log")


def check_readers(store):
    """Copying out reads nothing in the sense of lifetime=readers:N."""
    path = f"{store.mount['h1']}/for one reader"
    write(path, b"")
    cluster.set_hint(path, "lifetime", "readers:1")
    write(path, b"read me")
    store.refused(
        "stage", "out", path, f"{store.backend}/readers", code=3, saying=["no directory", "/readers/"]
    )
    store.stage("out", path, f"{store.backend}/readers/")
    time.sleep(0.5)
    cluster.check(os.path.exists(path), "gone behind who copied it out")
    pathlib.Path(path).read_bytes()
    cluster.wait_until(lambda: not os.path.exists(path), 10, "the end of what was read")


def check_hosts(store):
    """A host whose directory is another one, and one whose mount dies."""
    source, target = f"{store.mount['h1']}/results", f"{store.backend}/shared"
    os.mkdir(target)
    script = f"""exec unshare -m sh -c 'mount -t tmpfs none "{target}" && eval "$1"' sh "$1" """
    error = end(store.begin("out", source, target, *elsewhere(store, script)), 5)
    cluster.check("name one that all hosts share" in error, f"another directory: {error}")
    cluster.check("no host has a worker left" in error, f"another directory: {error}")
    # A mount is killed: what its host was to copy is copied by others.
    target = f"{store.backend}/by others"
    stage = store.begin("out", f"{store.mount['h1']}/many/.", target, "--jobs", "1")
    cluster.wait_until(lambda: list(pathlib.Path(target).glob("[0-9]*")), 20, "a file")
    command = store.store.kill("mount", "h3")
    end(stage)
    store.store.start("mount", "h3", command)
    check_equal(f"{store.mount['h1']}/many", target, "staged out without h3")


def check_restart(store):
    """The manager is killed when a file has been copied: it is asked again when it is back."""
    copied, go = f"{store.backend}/restart/kept", f"{store.backend}/go on"
    path = f"{store.mount['h1']}/results/kept"
    write(path, b"kept")
    # Its answers are held back behind its greeting.
    script = f'sh -c "$1" | {{ head -c 21; until [ -e "{go}" ]; do sleep 0.02; done; cat; }}'
    stage = store.begin("out", path, f"{store.backend}/restart/", *elsewhere(store, script))
    await_path(copied)
    command = store.store.kill("manager", "h0")
    write(go, b"")
    time.sleep(0.5)
    store.store.start("manager", "h0", command)
    end(stage)
    store.mosa("stage", "check")


def check_full_backend(store):
    small = f"{store.backend}/small"
    os.mkdir(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "small", small], check=True)
    try:
        source = f"{store.mount['h1']}/results"
        report = store.stage("out", source, small, code=4)
        broken = [item["path"] for item in report["failed"]]
        cluster.check(f"{source}/large" in broken, f"20 MiB in 4: {report}")
        cluster.check(all("No space" in item["error"] for item in report["failed"]), f"{report}")
        cluster.check(not leftovers(small), "a full backend keeps temporaries")
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        report = store.stage("out", source, small)
        cluster.check(report["skipped"] > 0, f"nothing of before is of use: {report}")
        check_equal(source, f"{small}/results", "staged out to a backend that was full")
    finally:
        subprocess.run(["umount", small], check=True)


def workers_of(pid):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"worker" in words and b"%d" % pid in words:
            found.append(int(entry.name))
    return found


def check_interrupted(store):
    """Killed in the middle: no file is half there, and the same command goes on."""
    source = f"{store.mount['h1']}/many"
    os.mkdir(source)
    for number in range(40):
        write(f"{source}/{number:02}", bytes_of(number, 3 * MIB))
    target = f"{store.backend}/many"
    command = store.command("stage", "out", f"{source}/.", target, "--jobs", "1")
    begun = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def done():
        return list(pathlib.Path(target).glob("[0-9]*"))

    cluster.wait_until(lambda: len(done()) >= 3, 20, "three files")
    workers = workers_of(begun.pid)
    cluster.check(len(workers) == 3, f"{len(workers)} processes copy on three hosts")
    begun.kill()
    begun.wait()
    for pid in workers:
        cluster.wait_until(lambda pid=pid: cluster.start_ticks(pid) == 0, 10, "its workers' end")
    there = done()
    cluster.check(len(there) < 40, "all was done before it was killed")
    for path in there:
        wanted = bytes_of(int(path.name), 3 * MIB)
        cluster.check(path.read_bytes() == wanted, f"{path} is not whole")
    # A worker that is lost takes nothing with it.
    again = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE)
    cluster.wait_until(lambda: len(done()) > len(there), 20, "another file")
    for pid in workers_of(again.pid)[:1]:
        os.kill(pid, signal.SIGKILL)
    report = json.loads(again.communicate(timeout=60)[0])
    cluster.check(again.returncode == 0, f"resumed: {report}")
    cluster.check(report["skipped"] >= len(there), f"{len(there)} were there: {report}")
    check_equal(source, target, "resumed", top=False)
    cluster.check(not leftovers(target), f"left: {leftovers(target)}")


def check_down_stages_out(store):
    target = f"{store.backend}/last"
    write(f"{store.mount['h1']}/results/late", b"late")
    store.mosa("cluster", "down", "--stage-out", target)
    late = pathlib.Path(f"{target}/results/late").read_bytes()
    cluster.check(late == b"late", f"staged out at the end: {late}")
    cluster.check(not store.store.state_path.exists(), "the cluster is there still")


def check_lost_bytes(store):
    """Bytes that are gone are named; all others come out."""
    lost = cluster.placed_directory(f"{store.mount['h1']}/lost", "node:h3")
    whole = cluster.placed_directory(f"{store.mount['h1']}/whole", "node:h2")
    for number in range(3):
        write(f"{lost}/{number}", bytes_of(number, MIB))
        write(f"{whole}/{number}", bytes_of(number, MIB))
    os.mkfifo(f"{whole}/pipe")
    store.store.kill("storage", "h3")
    cluster.wait_until(lambda: "lost/0" in store.store.tell("lost"), 20, "the loss of h3")
    target = f"{store.backend}/rest"
    report = store.stage("out", lost, whole, target, code=6)
    failed = sorted(os.path.relpath(item["path"], store.mount["h1"]) for item in report["failed"])
    cluster.check(failed == ["lost/0", "lost/1", "lost/2", "whole/pipe"], f"failed: {failed}")
    for number in range(3):
        have = pathlib.Path(f"{target}/whole/{number}").read_bytes()
        cluster.check(have == bytes_of(number, MIB), f"whole/{number} came out wrong")
    cluster.check(not list(pathlib.Path(f"{target}/lost").iterdir()), "something lost came out")


def test(arguments):
    backend = tempfile.mkdtemp(prefix="mosa-stage-")
    store = cluster.Cluster(arguments.bin, 3, ram="256M")
    try:
        with store:
            everything = Store(store, backend)
            check_in(everything)
            check_hints_in(everything)
            check_leftovers_in(everything)
            files = make_results(everything)
            check_refusal(everything, files)
            check_out(everything, files)
            check_changes(everything)
            check_same_looks(everything)
            check_readers(everything)
            check_full_backend(everything)
            check_interrupted(everything)
            check_hosts(everything)
            check_restart(everything)
            check_lost_bytes(everything)
        with cluster.Cluster(arguments.bin, 2, ram="64M") as second:
            os.mkdir(f"{second.mount('h1')}/results")
            cluster.set_hint(f"{second.mount('h1')}/results", "lifetime", "keep")
            check_down_stages_out(Store(second, backend))
    finally:
        shutil.rmtree(backend)


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
