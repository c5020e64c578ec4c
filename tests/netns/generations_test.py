"""Nothing that a program was told is done rests on what is no longer true.

A writer's host stops, or loses its link, until the file's copy has become the first one: what it
wrote is there afterwards, or fsync or close says that it is not. A removal or renaming that was answered
with a time-out does nothing when the link is back. Reads that wait for a node which comes back empty
give an error, or the bytes; never zeroes. A writer that merely paused goes on.
"""

import contextlib
import errno
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
from functools import partial

import cluster
from cluster import check, wait_until
from mapped_test import passed

MIB = 1 << 20
OLD, NEW = b"A" * (8 * MIB), b"B" * (4 * MIB)


def is_elsewhere(path, host):
    """The first copy has nothing on `host` any more."""
    return host not in json.loads(os.getxattr(path, "user.mosa.layout"))["nodes"]


def has_copies(path):
    copies = json.loads(os.getxattr(path, "user.mosa.layout"))["copies"]
    return copies and all(copy["state"] == "valid" for copy in copies)


def generation_test_file(mount, name, **hints):
    """An old file with a valid copy of each of its bytes."""
    directory = f"{mount}/{name}"
    os.mkdir(directory)
    for hint, value in hints.items():
        cluster.set_hint(directory, hint, value)
    path = f"{directory}/f"
    pathlib.Path(path).write_bytes(OLD)
    wait_until(lambda: has_copies(path), 60, f"the copies of {path}")
    return path


@contextlib.contextmanager
def stopped(store, host):
    """Mount and node of a host do not run, as while a virtual machine is paused."""
    pids = [store.pid(kind, host) for kind in ("mount", "storage")]
    for pid in pids:
        cluster.stop(pid)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


class Shell:
    """Runs commands. Begun before files are opened: a fork of their writer would commit them."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def run(self, command):
        self.process.stdin.write(f"{command} && echo ok || echo failed\n")
        check(self.process.stdout.readline() == "ok\n", f"failed: {command}")


@contextlib.contextmanager
def unplugged(store, host):
    """The host has no link."""
    shell = store.shell
    link = f"ip -n {store.host(host)['net_namespace']} link set eth0"
    shell.run(f"{link} down")
    try:
        yield
    finally:
        shell.run(f"{link} up")


def session_is_back(mount):
    """Asks the manager: what is cached does not count."""
    try:
        os.statvfs(mount)
        os.close(os.open(f"{mount}/probe-{time.monotonic_ns()}", os.O_CREAT | os.O_WRONLY))
        return True
    except OSError:
        return False


def heads(store, path, count=8):
    """What each host reads at the beginning."""
    relative = os.path.relpath(path, store.mount("h1"))
    found = {}
    for host in store.hosts:
        with open(f"{store.mount(host)}/{relative}", "rb") as file:
            found[host] = file.read(count)
    return found


def is_readable(store, path):
    try:
        heads(store, path)
        return True
    except OSError:
        return False


def write_while_away(store, kind, fault, *, passthrough=False, by_close=False, **hints):
    """The writer's host is away until others hold its bytes. Nothing acknowledged may be missing.

    passthrough: the kernel stores by itself, also while no daemon runs.
    by_close: the program asks for nothing but the close.
    """
    path = generation_test_file(store.mount("h1"), f"{kind}-{fault.__name__}", **hints)
    seen_by_others = path.replace(store.mount("h1"), store.mount("h2"))
    with passed(store.mount("h1"), path) if passthrough else contextlib.nullcontext():
        file = os.open(path, os.O_RDWR)
    check(os.pwrite(file, NEW, 0) == len(NEW), "a short write")
    with fault(store, "h1"):
        if passthrough:
            os.pwrite(file, NEW[:4096], 0)
        wait_until(lambda: is_elsewhere(seen_by_others, "h1"), 60, "h1's bytes being elsewhere")
        if passthrough:
            os.pwrite(file, NEW[:4096], 0)
        time.sleep(1)
    wait_until(lambda: session_is_back(store.mount("h1")), 60, "the mount of h1")
    failed = None
    try:
        if passthrough:
            os.pwrite(file, NEW[:4096], 0)
        if not by_close:
            os.fsync(file)
    except OSError as error:
        failed = error
    try:
        os.close(file)
    except OSError as error:
        failed = failed or error
    if failed:  # What is left of the write on some nodes is the same on all of them in the end.
        wait_until(lambda: len(set(heads(store, path).values())) == 1, 60, "agreement of the hosts")
    found = heads(store, path)
    saved = "close" if by_close else "fsync and close"
    print(f"{kind}, {fault.__name__}: {saved} {failed or 'ok'}; {sorted(set(found.values()))}")
    if failed:
        check(failed.errno == errno.ESTALE, f"{saved} failed with {failed}")
    else:
        check(set(found.values()) == {NEW[:8]}, f"{saved} ok, and there is {found}")


def store_given_up(store, fault):
    """What a node did not take in time, so that fsync failed, does not appear there later."""
    directory = f"{store.mount('h1')}/given-up-{fault.__name__}"
    os.mkdir(directory)
    cluster.set_hint(directory, "placement", "node:h2")
    path = f"{directory}/f"
    pathlib.Path(path).write_bytes(OLD)
    file = os.open(path, os.O_WRONLY)
    os.pwrite(file, OLD[:4096], 0)
    os.fsync(file)  # Now there is a connection to the node.
    with fault(store, "h2"):
        try:
            os.pwrite(file, NEW[: 64 << 10], 0)
            os.fsync(file)
            check(False, "fsync is ok without the node")
        except OSError as error:
            check(error.errno in (errno.EIO, errno.ETIMEDOUT), f"fsync fails with {error}")
    with contextlib.suppress(OSError):
        os.close(file)
    wait_until(lambda: session_is_back(store.mount("h2")), 60, "the mount of h2")
    wait_until(lambda: is_readable(store, path), 60, "the node of h2")
    end = time.monotonic() + 8  # TCP repeats what was lost after a few seconds.
    while time.monotonic() < end:
        found = heads(store, path)
        check(set(found.values()) == {OLD[:8]}, f"the bytes of a failed fsync are there: {found}")
        time.sleep(0.2)
    print(f"given up, {fault.__name__}: does not happen later")


def removed_and_made_anew(store, fault):
    """What a mount has still to store and commit concerns nobody's newer file of that name."""
    name = f"anew-{fault.__name__}"
    directory = cluster.placed_directory(f"{store.mount('h1')}/{name}", "node:h2")
    pathlib.Path(f"{directory}/f").write_bytes(OLD)
    file = os.open(f"{directory}/f", os.O_RDWR)
    os.pwrite(file, NEW, 0)
    with fault(store, "h1"):
        time.sleep(8)  # Its session is over.
        os.unlink(f"{store.mount('h2')}/{name}/f")
        pathlib.Path(f"{store.mount('h2')}/{name}/f").write_bytes(b"precious")
    wait_until(lambda: session_is_back(store.mount("h1")), 60, "the mount of h1")
    result = "ok"
    for save in (lambda: os.pwrite(file, NEW[:4096], 0), lambda: os.fsync(file), lambda: os.close(file)):
        try:
            save()
        except OSError as error:
            result = error
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for host in store.hosts:
            found = pathlib.Path(f"{store.mount(host)}/{name}/f").read_bytes()
            check(found == b"precious", f"{host} reads {found[:8]!r} of {len(found)} bytes")
        time.sleep(0.2)
    print(f"removed and made anew, {fault.__name__}: {result}; the new file is as it was made")


def pause_without_consequence(store):
    """Nobody has touched the file meanwhile: the writer goes on, and nothing is lost."""
    path = f"{store.mount('h1')}/paused"
    with open(path, "w+b", buffering=0) as file:
        file.write(OLD)
        os.fsync(file.fileno())
        os.pwrite(file.fileno(), NEW, 0)
        pid = store.pid("mount", "h1")
        cluster.stop(pid)
        time.sleep(8)
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: session_is_back(store.mount("h1")), 60, "the mount of h1")
        os.fsync(file.fileno())
    check(set(heads(store, path).values()) == {NEW[:8]}, "a paused writer has lost bytes")


def change_after_time_out(store, change, name):
    """What was answered ETIMEDOUT concerns nobody's newer file."""
    mounts = [store.mount(host) for host in ("h1", "h2", "h3")]
    pathlib.Path(f"{mounts[0]}/{name}").write_text("old")
    pathlib.Path(f"{mounts[1]}/{name}-other").write_text("other")
    check(pathlib.Path(f"{mounts[1]}/{name}").read_text() == "old", "h2 does not see the file")
    with unplugged(store, "h2"):
        begun = time.monotonic()
        try:
            change(f"{mounts[1]}/{name}")
            check(False, f"{change.__name__} without a link has succeeded")
        except OSError as error:
            print(f"{change.__name__}: {error.strerror} after {time.monotonic() - begun:.1f} s")
        os.unlink(f"{mounts[0]}/{name}")
        pathlib.Path(f"{mounts[0]}/{name}").write_text("precious")
    wait_until(lambda: session_is_back(mounts[1]), 60, "the mount of h2")
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for mount in mounts:
            text = pathlib.Path(f"{mount}/{name}").read_text()
            check(text == "precious", f"{mount}/{name} is {text!r}")
        time.sleep(0.2)


def unlink(path):
    os.unlink(path)


def rename(path):
    os.rename(f"{path}-other", path)


def reads_of_an_emptied_node(store, count=40, size=512 << 10):
    """Waiting reads end with an error or the bytes when their node comes back without any."""
    directory = cluster.placed_directory(f"{store.mount('h2')}/emptied", "local")
    for i in range(count):
        pathlib.Path(f"{directory}/{i}").write_bytes(b"A" * size)
    cluster.check_location(f"{directory}/0", "h2")
    command = store.kill("storage", "h2")
    objects = pathlib.Path(command[command.index("--dir") + 1])
    subprocess.run(["find", str(objects), "-mindepth", "1", "-delete"], check=True)
    results = [None] * count

    def read(i):
        path = f"{store.mount('h1')}/emptied/{i}"
        done = subprocess.run(
            ["dd", f"if={path}", "iflag=direct", f"bs={size}", "status=none"], capture_output=True
        )
        results[i] = (done.returncode, done.stdout)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(1.5)  # They are waiting for the node.
    store.start("storage", "h2", command)
    for thread in threads:
        thread.join()
    zeroes = sum(1 for _, data in results if data.strip(b"A"))
    errors = sum(1 for code, _ in results if code != 0)
    print(f"of {count} waiting reads {errors} ended with an error, {zeroes} with other bytes")
    check(zeroes == 0, f"{zeroes} of {count} reads returned bytes that nobody wrote")
    check(errors == count, f"{count - errors} reads of lost bytes succeeded")
    for host in ("h1", "h2"):
        writes_into_lost_bytes(f"{store.mount(host)}/emptied/0")
    path = f"{store.mount('h1')}/emptied/0"
    pathlib.Path(path).write_bytes(b"B" * size)  # It is cut to nothing first.
    check(pathlib.Path(f"{store.mount('h2')}/emptied/0").read_bytes() == b"B" * size, "a new content")


@contextlib.contextmanager
def node_stopped(store, host):
    """The storage node alone does not run."""
    pid = store.pid("storage", host)
    cluster.stop(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def try_to_cut(path):
    """Nobody may cut a file of a node that does not answer and is not known to be silent yet."""
    try:
        os.truncate(path, 0)
        return True
    except OSError as error:
        check(error.errno in (errno.EIO, errno.ETIMEDOUT, errno.EAGAIN), f"truncate of {path}: {error}")
        return False


def cut_while_silent(store, fault):
    """What was cut off while its node did not answer is not read when the file grows again."""
    name = f"cut-{fault.__name__}"
    path = f"{store.mount('h1')}/{name}"
    zeroes = bytes(len(OLD))
    pathlib.Path(path).write_bytes(OLD)
    check(not is_elsewhere(path, "h2"), f"{path} has nothing on h2")

    def wrong(hosts):
        found = {host: pathlib.Path(f"{store.mount(host)}/{name}").read_bytes() for host in hosts}
        return [host for host, data in found.items() if data != zeroes]

    check(wrong(["h3"]) == ["h3"], "the file is not there")
    with fault(store, "h2"):
        wait_until(lambda: try_to_cut(path), 40, f"{path} is cut")
        os.truncate(path, len(OLD))
        check(not wrong(["h1", "h3"]), "bytes that were cut off are read while their node is silent")
    wait_until(lambda: session_is_back(store.mount("h2")), 30, "h2 is back")
    for _ in range(10):
        check(not wrong(store.hosts), "bytes that were cut off are read again")
        time.sleep(0.5)
    with open(path, "r+b", buffering=0) as file:
        file.seek(len(OLD) // 2)
        file.write(NEW)
        os.fsync(file.fileno())
    zeroes = bytes(len(OLD) // 2) + NEW
    check(not wrong(store.hosts), f"{path} does not hold what was written last")


def writes_into_lost_bytes(path):
    """Nobody could read what was written among bytes that are lost, so nothing is acknowledged."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(descriptor, b"B" * 4096, 8192)
        check(False, f"{path}: bytes were written among those that are lost")
    except OSError as error:
        check(error.errno == errno.EIO, f"{path}: {error}")
    finally:
        os.close(descriptor)


def plain_checks():
    """(name, what is done) with mounts that write by themselves."""
    yield "pause", pause_without_consequence
    for fault in (stopped, unplugged):

        def away(store, kind, fault=fault, **options):
            write_while_away(store, kind, fault, replicas="2", **options)

        by = fault.__name__
        yield f"plain-{by}", partial(away, kind="plain", placement="local")
        yield f"closed-{by}", partial(away, kind="closed", placement="local", by_close=True)
        yield f"striped-{by}", partial(away, kind="striped", placement="stripe")
        yield f"given-up-{by}", partial(store_given_up, fault=fault)
        yield f"anew-{by}", partial(removed_and_made_anew, fault=fault)
    for fault in (stopped, unplugged, node_stopped):
        yield f"cut-{fault.__name__}", partial(cut_while_silent, fault=fault)
    yield "removed", partial(change_after_time_out, change=unlink, name="removed")
    yield "replaced", partial(change_after_time_out, change=rename, name="replaced")
    yield "emptied", reads_of_an_emptied_node


def passthrough_checks():
    for fault in (stopped, unplugged):
        hints = {"replicas": "2", "placement": "local"}
        yield (
            f"passthrough-{fault.__name__}",
            partial(write_while_away, kind="passthrough", fault=fault, passthrough=True, **hints),
        )


def test(arguments):
    # With so much memory kernels may write.
    for checks, ram in ((plain_checks(), "1G"), (passthrough_checks(), "4G")):
        wanted = [one for name, one in checks if arguments.only in name]
        if not wanted:
            continue
        with cluster.Cluster(arguments.bin, 3, ram=ram) as store:
            store.shell = Shell()
            for one in wanted:
                one(store)


if __name__ == "__main__":
    cluster.main(
        test,
        limit_s=600,
        add_arguments=lambda parser: parser.add_argument("--only", default="", help="part of a check's name"),
        description=__doc__,
    )
