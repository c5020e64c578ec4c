"""A job's user, with the secret that his job gives him, stays a user.

`nobody` has what deploy/slurm hands out: a secret of the role user, and a mount that root has made
for him. He tries to become root through a storage node that passes root's files on, to register a
node, to read another store, to end daemons or drain nodes, and to have root's daemons make files
where he points; each is refused, and nothing that root's is changes. The node that passes wrong
descriptors is tried once more with the secret of a node, as if that had been stolen: the mount takes
none of them. Nor does it take a directory, a device, or a file of another owner, mode or device from
a node that root runs. Then all keys of the cluster are exchanged while a program reads and writes.
"""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import cluster
from cluster import check, wait_until

DESCRIPTOR_BYTES = 1 << 16
NOBODY = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")

# A storage node that passes what its environment names instead of its objects.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int on(void) { return access(getenv("EVIL_ON"), F_OK) == 0; }
#define AT(n) int n(int d, const char* p, int f, ...) { \
  va_list a; va_start(a, f); int m = va_arg(a, int); va_end(a); \
  if (p && strlen(p) == 19 && p[2] == '/' && on()) \
    return open(getenv("EVIL_FILE"), atoi(getenv("EVIL_FLAGS")) | O_CLOEXEC); \
  return ((int (*)(int, const char*, int, ...))dlsym(RTLD_NEXT, #n))(d, p, f, m); }
AT(openat) AT(openat64)
#define FC(n) int n(int d, int c, ...) { \
  va_list a; va_start(a, c); void* x = va_arg(a, void*); va_end(a); \
  if (c == F_SETLEASE && on()) { errno = EAGAIN; return -1; } \
  return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, #n))(d, c, x); }
FC(fcntl) FC(fcntl64)
"""


class Job:
    """The user's side: his secret, his directory, his commands on host h1."""

    def __init__(self, store, directory):
        self.store = store
        self.directory = directory
        self.secrets = pathlib.Path(store.state["plan"]["directory"]) / "secrets"
        self.manager = store.state["manager_address"]
        self.secret = self.issue("job.pem", "--uid", "65534")
        self.bin = directory / "bin"  # Where nobody may run them.
        self.bin.mkdir()
        for name in ("mosa", "mosa-storage", "mosa-mount"):
            shutil.copy(store.binaries / name, self.bin)
        self.home = directory / "home"
        self.home.mkdir()
        shutil.chown(self.home, "nobody", "nogroup")

    def issue(self, name, *flags):
        path = self.directory / name
        subprocess.run(
            [self.store.binaries / "mosa", "secret", "issue", self.secrets, path, *flags],
            check=True, capture_output=True)  # fmt: skip
        shutil.chown(path, "nobody", "nogroup")
        return path

    def run(self, *command, environment=()):
        return self.store.exec("h1", *NOBODY, "env", *environment, *map(str, command), timeout=120)

    def mosa(self, *words):
        return self.run(self.bin / "mosa", *words, "--manager", self.manager, "--secret", self.secret)

    def node_command(self, secret, name="evil"):
        return [
            self.bin / "mosa-storage", "--name", name, "--manager", self.manager, "--listen",
            f"{self.store.host('h1')['address']}:7555", "--dir", self.home / name, "--limit", "64M",
            "--socket", self.home / f"{name}.sock", "--secret", secret,
        ]  # fmt: skip

    def refused(self, done, *says):
        text = done.stdout + done.stderr
        check(done.returncode != 0, f"it was done: {text}")
        check(any(word in text for word in says), f"none of {says} in: {text}")
        print("refused:", text.strip().splitlines()[-1])


def asks(job):
    """What the secret is for."""
    for words in (("status", "--json"), ("node", "list"), ("hint", "rule", "list"), ("lost",)):
        done = job.mosa(*words)
        check(done.returncode == 0, f"{words}: {done.stderr}")
    mine = pathlib.Path(job.store.mount("h1")) / "mine"
    done = job.mosa("hint", "rule", "add", "/mine/*", "replicas=2")
    check(done.returncode == 0, f"a rule: {done.stderr}")
    job.run("touch", mine / "f")
    check(os.getxattr(mine / "f", "user.mosa.replicas") == b"2", "the user's rule is not applied")


def registers_no_node(job):
    done = job.run(*job.node_command(job.secret))
    job.refused(done, "has the role user")
    # Not even with a program of his own that does not look.
    names = {node["name"] for node in json.loads(job.mosa("node", "list", "--json").stdout)}
    check(names == {"h1", "h2"}, f"nodes: {names}")


def opens_no_session(job):
    mount = job.home / "mount"
    job.run("mkdir", mount)
    done = job.run(job.bin / "mosa-mount", mount, "--manager", job.manager, "--secret", job.secret)
    job.refused(done, "has the role user")
    done = job.run("cat", job.secrets / "mount.pem")
    job.refused(done, "Permission denied")


def administers_nothing(job):
    job.refused(job.mosa("node", "drain", "h2"), "takes the role admin")
    target = job.directory / "roots"
    target.mkdir(mode=0o755)
    link = job.home / "link"
    job.run("ln", "-s", target, link)
    for directory in (link, job.home, "/etc"):
        job.refused(job.mosa("log", "on", directory), "takes the role admin")
    job.refused(job.mosa("log", "off"), "takes the role admin")
    # Root itself is kept from the user's link, and from his directory.
    admin = ["--manager", job.manager, "--secret", job.secrets / "admin.pem"]
    for directory, why in ((link, "symbolic link"), (job.home, "writable for nobody else")):
        done = job.store.exec("h1", job.bin / "mosa", "log", "on", directory, *map(str, admin))
        job.refused(done, why)
    mount = job.store.mount("h1")
    job.refused(job.run("setfattr", "-n", "user.mosa.trace", "-v", f"full {link}", mount),
                "ermission denied", "not permitted")  # fmt: skip
    tracing = json.loads(os.getxattr(mount, "user.mosa.trace"))["tracing"]
    check(not tracing, "the user started no trace")
    check(not list(target.iterdir()), f"daemons made {list(target.iterdir())}")
    check(not list(job.home.glob("*.requests")), "daemons made files in the user's directory")
    rule = json.loads(job.store.tell("hint", "rule", "add", "/roots/*", "replicas=2", "--json"))
    job.refused(job.mosa("hint", "rule", "remove", rule["id"]), "does not belong to user 65534")
    roots = f"{job.store.mount('h1')}/roots"
    os.mkdir(roots)
    done = job.mosa("hint", "set", roots, "replicas=2")
    job.refused(done, "does not belong to user 65534", "not permitted", "ermission denied")


def ends_nothing(job):
    """Neither by signals nor by the command that ends a cluster."""
    pids = job.store.pids("manager", "storage", "mount")
    for pid in pids:
        for signal in ("TERM", "STOP", "KILL"):
            job.refused(job.run("sh", "-c", f"kill -{signal} {pid}"), "not permitted")
    words = ("--discard", "--name", job.store.name, "--dir", job.store.directory)
    done = job.run(job.bin / "mosa", "cluster", "down", *words)
    job.refused(done, "use that user's account or root")
    check(all(map(cluster.start_ticks, pids)), "a daemon has ended")
    check(job.mosa("status").returncode == 0, "the manager does not answer")


def reads_no_other_store(job, other):
    """Another job on the same machine: its manager has another authority."""
    theirs = pathlib.Path(other.mount("h1")) / "theirs"
    theirs.write_text("of another job")
    for path in (theirs, other.host("h1")["objects"], f"{other.state['plan']['directory']}/secrets"):
        job.refused(job.run("ls", "-l", path), "Permission denied")
    # From this machine itself, which reaches both clusters.
    command = [*NOBODY, job.bin / "mosa", "status", "--manager", other.state["manager_address"]]
    done = subprocess.run([*command, "--secret", job.secret], capture_output=True, text=True, timeout=60)  # fmt: skip
    job.refused(done, "a different cluster secret")


def build_shim(directory):
    source, library = directory / "shim.c", directory / "shim.so"
    if not library.exists():
        source.write_text(SHIM)
        subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", library, source, "-ldl"], check=True)
    return library


@contextlib.contextmanager
def evil_node(job, secret, victim, flags, name="evil", user=NOBODY):
    """A node of nobody's that passes root's file instead of objects."""
    on = job.directory / "on"
    environment = [f"LD_PRELOAD={build_shim(job.directory)}", f"EVIL_ON={on}", f"EVIL_FILE={victim}"]
    environment += [f"EVIL_FLAGS={flags}"]
    entered = ["ip", "netns", "exec", job.store.host("h1")["net_namespace"], *user, "env"]
    with open(job.directory / "evil.log", "ab") as log:
        process = subprocess.Popen(
            [*entered, *environment, *map(str, job.node_command(secret, name))],
            stdout=log, stderr=log)  # fmt: skip
    try:
        yield on, process
    finally:
        on.unlink(missing_ok=True)
        process.kill()
        process.wait()


def becomes_no_root(job):
    """With a node's secret, as if he had stolen one: descriptors of root's files are not taken."""
    stolen = job.issue("stolen.pem", "--role", "node")
    victim = job.directory / "roots-file"
    secret_text = "root alone may read this\n" * 200
    victim.write_text(secret_text)
    victim.chmod(0o600)
    readable = job.directory / "readable"  # Root's, for all to read: with O_RDONLY.
    readable.write_text(secret_text)
    mine = pathlib.Path(job.store.mount("h1")) / "mine"
    for number, (file, flags) in enumerate(((victim, os.O_PATH), (readable, os.O_RDONLY))):
        with evil_node(job, stolen, file, flags) as (on, process):
            def is_there():
                check(process.poll() is None, (job.directory / "evil.log").read_text()[-2000:])
                listed = json.loads(job.mosa("node", "list", "--json").stdout)
                return any(n["name"] == "evil" and n["state"] == "live" for n in listed)

            wait_until(is_there, 60, "the evil node")
            path = mine / f"evil{number}"
            job.run("mkdir", path)
            job.run("setfattr", "-n", "user.mosa.placement", "-v", "node:evil", path)
            job.run("sh", "-c", f"head -c {len(secret_text)} /dev/zero >{path}/f")
            on.touch()
            read = job.run("cat", path / "f")
            check("root alone" not in read.stdout, "nobody read root's file through root's mount")
            job.run("sh", "-c", f"printf overwritten | timeout 60 dd of={path}/f conv=notrunc")
            check(file.read_text() == secret_text, "nobody wrote to root's file")
        wait_until(lambda: not is_listed_live(job), 60, "the end of the evil node")
    told = [line for line in mount_log(job) if "user 65534" in line]
    check(told, f"the mount says nothing of the socket: {mount_log(job)[-20:]}")
    check(len(told) <= 4, f"the mount says it {len(told)} times")
    print("refused:", told[0])


def is_listed_live(job, name="evil"):
    listed = json.loads(job.mosa("node", "list", "--json").stdout)
    return any(n["name"] == name and n["state"] == "live" for n in listed)


def mount_log(job):
    return [line for where, text in job.store.logs() if where == "h1/mount.log" for line in text]


def passthrough_opens(mount):
    return json.loads(os.getxattr(mount, "user.mosa.mount"))["opens_passthrough"]


def read_in_every_way(path):
    """By the kernel's pages or passthrough, and past them; what comes of it is not looked at."""
    for flags in (0, os.O_DIRECT):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | flags)
            try:
                os.read(descriptor, DESCRIPTOR_BYTES)
            finally:
                os.close(descriptor)


def wrong_descriptors(here, elsewhere):
    """(what a node passes instead of an object, how it opens that, what the mount says)"""

    def file(directory, name, mode=0o600):
        path = pathlib.Path(directory) / name
        path.write_bytes(bytes(DESCRIPTOR_BYTES))
        path.chmod(mode)
        return path

    theirs, linked = file(here, "theirs"), file(here, "linked")
    shutil.chown(theirs, "nobody", "nogroup")
    os.link(linked, here / "link")
    return (
        (here, os.O_RDONLY, "refers to a directory"),
        ("/dev/zero", os.O_RDONLY, "refers to a device"),
        (theirs, os.O_RDONLY, "belongs to user 65534"),
        (file(here, "readable", 0o644), os.O_RDONLY, "has mode 0644"),
        (linked, os.O_RDONLY, "has 2 hard links"),
        (file(elsewhere, "elsewhere"), os.O_RDONLY, "other objects are on"),
        (file(here, "path"), os.O_PATH, "O_RDONLY was requested"),
        (file(here, "writable"), os.O_RDWR, "O_RDONLY was requested"),
    )


def takes_no_wrong_descriptor(job):
    """From a node that root runs, so that socket and process are trusted."""
    mount = job.store.mount("h1")
    here = job.directory / "descriptors"
    here.mkdir()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        for number, (passed, flags, why) in enumerate(wrong_descriptors(here, elsewhere)):
            name = f"wrong{number}"
            secret = job.secrets / "node.pem"
            with evil_node(job, secret, passed, flags, name=name, user=()) as (on, process):
                wait_until(lambda name=name: is_listed_live(job, name), 60, f"node {name}")
                path = cluster.placed_directory(f"{mount}/{name}", f"node:{name}") + "/f"
                pathlib.Path(path).write_bytes(bytes(DESCRIPTOR_BYTES))
                check(pathlib.Path(path).read_bytes() == bytes(DESCRIPTOR_BYTES), f"{path}: other bytes")
                time.sleep(1)  # What was open is released.
                on.touch()
                before = passthrough_opens(mount)

                def refusals(name=name, path=path, why=why):
                    read_in_every_way(path)
                    return [line for line in mount_log(job) if f"node {name} " in line and why in line]

                wait_until(refusals, 30, f"the refusal of a descriptor that {why}")
                told = refusals()
                check(passthrough_opens(mount) == before, f"the kernel was given what {why}")
                check(process.poll() is None, f"node {name} has ended")
            check(len(told) == 1, f"it is said {len(told)} times in a minute")
            print("refused:", told[0])
        for other in range(number + 1):
            name = f"wrong{other}"
            wait_until(lambda name=name: not is_listed_live(job, name), 60, f"the end of node {name}")


def exchanges_keys(job):
    """All keys and the authority, while files are written and read on two hosts."""
    store = job.store
    stop = threading.Event()
    failures, rounds = [], [0]

    def work():
        while not stop.is_set():
            try:
                data = os.urandom(100_000)
                path = f"{store.mount('h1')}/rotation"
                pathlib.Path(path).write_bytes(data)
                if pathlib.Path(f"{store.mount('h2')}/rotation").read_bytes() != data:
                    failures.append("other bytes")
                rounds[0] += 1
            except OSError as error:
                failures.append(str(error))

    def shown(path):
        return json.loads(
            subprocess.run([store.binaries / "mosa", "secret", "show", path, "--json"],
                           check=True, capture_output=True, text=True).stdout)  # fmt: skip

    before = {role: shown(job.secrets / f"{role}.pem") for role in ("manager", "node", "mount", "admin")}
    old_secret = job.directory / "old-admin.pem"
    shutil.copy(job.secrets / "admin.pem", old_secret)
    worker = threading.Thread(target=work)
    worker.start()
    try:
        for step in ("begin", "switch", "end"):
            subprocess.run([store.binaries / "mosa", "secret", "rotate", step, job.secrets],
                           check=True, capture_output=True)  # fmt: skip
            # The files are the daemons' own here: they read them again.
            stop.wait(12)
            # Whoever connects anew does so with what the files have now.
            store.tell("status")
    finally:
        stop.set()
        worker.join()
    check(not failures, f"{len(failures)} failures in {rounds[0]} rounds: {failures[:3]}")
    check(rounds[0] > 10, f"only {rounds[0]} rounds of writing and reading")
    for role, facts in before.items():
        after = shown(job.secrets / f"{role}.pem")
        check(after["issuer"] != facts["issuer"], f"{role} still has the old authority's certificate")
        check(after["trusts"] == [after["issuer"]], f"{role} trusts {after['trusts']}")
    done = store.exec("h1", job.bin / "mosa", "status", "--manager", job.manager,
                      "--secret", str(old_secret))  # fmt: skip
    check(done.returncode != 0, "the old admin's secret is still taken")
    # A daemon that starts now, and its connections, are of the new authority alone.
    command = store.kill("manager", "h0")
    store.start("manager", "h0", command)
    wait_until(lambda: pathlib.Path(f"{store.mount('h1')}/rotation").exists(), 60, "the mount")
    print(f"keys exchanged during {rounds[0]} rounds of writing and reading")


def test(arguments):
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        directory.chmod(0o755)
        store = stack.enter_context(
            cluster.Cluster(arguments.bin, 2, ram="1536M", flags=("--allow-other",)))  # fmt: skip
        other = stack.enter_context(cluster.Cluster(arguments.bin, 1, ram="64M"))
        job = Job(store, directory)
        mine = pathlib.Path(store.mount("h1")) / "mine"
        mine.mkdir()
        shutil.chown(mine, "nobody", "nogroup")
        os.chmod(store.state["plan"]["directory"], 0o711)
        for path in (store.mount("h1"), pathlib.Path(store.mount("h1")).parent):
            if not os.stat(path).st_mode & 0o001:
                os.chmod(path, 0o711)
        for attempt in (asks, registers_no_node, opens_no_session, administers_nothing, ends_nothing,
                        becomes_no_root, takes_no_wrong_descriptor,
                        functools.partial(reads_no_other_store, other=other), exchanges_keys):  # fmt: skip
            name = getattr(attempt, "func", attempt).__name__
            if arguments.only in name:
                print(f"-- {name}", flush=True)
                attempt(job)


if __name__ == "__main__":
    cluster.main(
        test,
        limit_s=600,
        add_arguments=lambda parser: parser.add_argument("--only", default="", help="part of an attempt's name"),
        description=__doc__,
    )
