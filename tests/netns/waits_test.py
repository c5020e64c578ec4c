"""Who waits in a mount: for how long, and whom that keeps.

Closes that wait for copies do not keep names and attributes of others; a killed program does not
wait on; a stopped node does not keep what goes to others; buffered bytes outlast a silence of the
manager; a record that several requests carry is
one record; and after a manager's restart nobody sees an old name.
"""

import contextlib
import errno
import mmap
import os
import signal
import subprocess
import sys
import threading
import time

import cluster
from consistency_test import get, is_absent, put

MIB = 1 << 20
WAIT_MAX_S = 15.0
OTHERS_MAX_S = 3.0  # What names and attributes may take on a busy machine.
CLOSED_BYTES = 128 << 10
CLOSE_MAX_S = 40  # A close goes on while its copies make progress.
DIES_WITHIN_S = 1.5
STALE_LOOKS = 10


@contextlib.contextmanager
def stopped(store, kind, host):
    pid = store.pid(kind, host)
    cluster.stop(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def check_closes_keep_nobody(store, closes, **hints):
    """Closes that wait for copies over slow links: others go on, and every close ends.

    A close whose copies do not begin in time fails.
    """
    directory = f"{store.mount('h1')}/closes"
    os.mkdir(directory)
    for hint, value in hints.items():
        cluster.set_hint(directory, hint, value)
    taken, failed = [], []

    def close_one(number):
        try:
            descriptor = os.open(f"{directory}/{number}", os.O_CREAT | os.O_WRONLY)
            os.write(descriptor, bytes(CLOSED_BYTES))
            begin = time.monotonic()
            os.close(descriptor)
            taken.append(time.monotonic() - begin)
        except OSError as error:
            failed.append(error)

    threading.stack_size(128 << 10)
    threads = [threading.Thread(target=close_one, args=(number,)) for number in range(closes)]
    for thread in threads:
        thread.start()
    longest = 0.0
    while any(thread.is_alive() for thread in threads):
        begin = time.monotonic()
        os.statvfs(store.mount("h1"))
        os.listdir(store.mount("h1"))
        longest = max(longest, time.monotonic() - begin)
        time.sleep(0.1)
    errors = {error.errno for error in failed}
    print(f"{hints}: {closes} closes, {len(failed)} failed, longest {max(taken):.1f} s; ", end="")
    print(f"names of others {longest:.2f} s", flush=True)
    cluster.check(errors <= {errno.EIO}, f"closes failed with {errors}")
    cluster.check(longest < OTHERS_MAX_S, f"a listing took {longest:.1f} s beside closes")
    cluster.check(max(taken) < CLOSE_MAX_S, f"a close took {max(taken):.1f} s")


def check_killed_programs_die(store):
    """A look at a name while the manager does not answer, and SIGKILL, also behind a signal."""
    program = (
        "import os, signal, sys; signal.signal(signal.SIGUSR1, lambda *_: None);"
        "os.write(1, b'x'); os.stat(sys.argv[1])"
    )
    with stopped(store, "manager", "h0"):
        for before in ((), (signal.SIGUSR1,)):
            command = [sys.executable, "-c", program, f"{store.mount('h1')}/absent{len(before)}"]
            child = subprocess.Popen(command, stdout=subprocess.PIPE)
            child.stdout.read(1)
            time.sleep(0.3)
            for number in before:
                child.send_signal(number)
                time.sleep(0.2)
            cluster.check(child.poll() is None, "the program does not wait for the manager")
            begin = time.monotonic()
            child.kill()
            child.wait()
            took = time.monotonic() - begin
            print(f"killed while it waited, after {len(before)} signals: gone in {took:.2f} s")
            cluster.check(took < DIES_WITHIN_S, f"a killed program lived on for {took:.1f} s")


def check_one_directory_without_manager(store):
    """The kernel lets one program at a time change a directory: their waits must not add up."""
    near, far = f"{store.mount('h1')}/shared", f"{store.mount('h2')}/shared"
    os.mkdir(near)
    for number in range(6):
        put(f"{near}/{number}", b"x" * 100_000)
    os.listdir(far)
    calls = {
        "unlink": lambda: os.unlink(f"{far}/0"),
        "rename": lambda: os.rename(f"{far}/1", f"{far}/2"),
        "create": lambda: put(f"{far}/new", b"x"),
        "mkdir": lambda: os.mkdir(f"{far}/directory"),
        "symlink": lambda: os.symlink("target", f"{far}/symlink"),
        "list": lambda: os.listdir(far),
        "truncate": lambda: os.truncate(f"{far}/3", 10),
        "read": lambda: open(f"{far}/4", "rb").read(),
    }
    taken = {}

    def run(name):
        begin = time.monotonic()
        with contextlib.suppress(OSError):
            calls[name]()
        taken[name] = time.monotonic() - begin

    with stopped(store, "manager", "h0"):
        threads = [threading.Thread(target=run, args=(name,)) for name in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("without a manager, s:", {name: round(taken[name], 1) for name in sorted(taken)})
    longest = max(taken, key=taken.get)
    cluster.check(taken[longest] <= WAIT_MAX_S, f"{longest} took {taken[longest]:.1f} s")

    def works():
        with contextlib.suppress(OSError):
            put(f"{far}/again", b"x")
            put(f"{near}/again", b"x")
            return True

    cluster.wait_until(works, OTHERS_MAX_S, "a create on both hosts after the silence")


def check_one_node_keeps_no_other(store):
    """Written behind: what goes to a stopped node holds its own lane only."""
    root = store.mount("h1")
    for host in ("h2", "h3"):
        cluster.placed_directory(f"{root}/to-{host}", f"node:{host}")
        put(f"{root}/to-{host}/first", bytes(MIB))
    begun = threading.Event()

    def write_to_stopped(number):
        with contextlib.suppress(OSError):
            descriptor = os.open(f"{root}/to-h3/{number}", os.O_CREAT | os.O_WRONLY)
            try:
                begun.set()
                for _ in range(3):
                    os.write(descriptor, bytes(MIB))
            finally:
                os.close(descriptor)

    with stopped(store, "storage", "h3"):
        threads = [threading.Thread(target=write_to_stopped, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        begun.wait(20)
        time.sleep(0.5)
        begin = time.monotonic()
        put(f"{root}/to-h2/second", bytes(2 * MIB))
        took = time.monotonic() - begin
        print(f"beside a stopped node 2 MiB go to another in {took:.2f} s")
    for thread in threads:
        thread.join()
    cluster.check(took < OTHERS_MAX_S, f"a write to a living node took {took:.1f} s")


def check_a_store_outlasts_a_silence(store):
    """Buffered bytes wait for a manager for which programs do not wait any more."""
    directory = cluster.placed_directory(f"{store.mount('h1')}/silence", "node:h2")
    path = f"{directory}/f"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
    os.pwrite(descriptor, b"a" * MIB, 0)
    os.fsync(descriptor)
    os.pwrite(descriptor, b"b" * 1000, 0)  # So little stays in the mount.
    result = []

    def sync():
        try:
            os.fsync(descriptor)
            result.append("ok")
        except OSError as error:
            result.append(str(error))

    syncing = threading.Thread(target=sync)
    with stopped(store, "manager", "h0"):
        time.sleep(WAIT_MAX_S)
        syncing.start()
        time.sleep(3)
        cluster.check(not result, f"without a manager fsync answered {result}")
    begin = time.monotonic()
    syncing.join()
    took = time.monotonic() - begin
    os.close(descriptor)
    print(f"fsync of bytes that were buffered before a silence: {result[0]}, {took:.2f} s behind it")
    cluster.check(result == ["ok"], f"fsync once the manager answers: {result}")
    found = get(f"{store.mount('h3')}/silence/f")
    cluster.check(found == b"b" * 1000 + b"a" * (MIB - 1000), "another host reads something else")


def append_records(path, mark, size, count, aligned):
    """In a process of its own. The memory begins at a page, or a byte behind one."""
    child = os.fork()
    if child:
        return child
    memory = mmap.mmap(-1, size + 4096)
    begin = 0 if aligned else 1
    memory[:] = bytes([mark]) * len(memory)
    view = memoryview(memory)[begin : begin + size]
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    code = 0
    for _ in range(count):
        code |= os.write(descriptor, view) != size
    os.close(descriptor)
    os._exit(code)


def check_records_are_whole(store):
    for size, aligned in ((4 * MIB, True), (MIB, False), (2 * MIB + 5, False)):
        name = f"log-{size}-{aligned}"
        count = 24 * MIB // size
        children = [
            append_records(f"{store.mount(host)}/{name}", ord(host[1]), size, count, aligned)
            for host in ("h1", "h2")
        ]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        cluster.check(codes == [0, 0], f"appending {size} bytes failed: {codes}")
        with open(f"{store.mount('h3')}/{name}", "rb") as file:
            data = file.read()
        os.unlink(f"{store.mount('h1')}/{name}")
        whole = [len(set(data[at : at + size])) == 1 for at in range(0, len(data), size)]
        print(f"{len(whole)} records of {size} bytes, {whole.count(False)} torn")
        cluster.check(len(data) == 2 * count * size, f"the log has {len(data)} bytes")
        cluster.check(all(whole), f"{whole.count(False)} of {len(whole)} records are torn")


def check_names_after_a_restart(store, files):
    """The mount that looks knows many inodes, so dropping what it keeps takes long."""
    one, other = store.mount("h1"), store.mount("h2")
    os.mkdir(f"{one}/many")
    for number in range(files):
        os.close(os.open(f"{one}/many/{number}", os.O_CREAT | os.O_WRONLY))
    for entry in os.scandir(f"{other}/many"):
        entry.stat()
    counts = {"absent": 0, "stale": 0, "failed": 0}

    def move_and_look(number):
        try:
            os.rename(f"{one}/k{number}", f"{one}/l{number}")
        except OSError as error:
            print(error)
            counts["failed"] += 1
            return
        counts["absent" if is_absent(f"{other}/k{number}") else "stale"] += 1

    for number in range(STALE_LOOKS):
        put(f"{one}/k{number}", b"x")
        os.stat(f"{other}/k{number}")
        command = store.kill("manager", "h0")
        mover = threading.Thread(target=move_and_look, args=(number,))
        mover.start()
        store.start("manager", "h0", command)
        mover.join()
    print(f"old names after {STALE_LOOKS} renames over a manager's restart, {files} inodes: {counts}")
    cluster.check(counts["stale"] == 0, f"old names were still there after renames: {counts}")
    # A sanitized manager may need longer to start than a call waits.
    wanted = 1 if cluster.is_sanitized(store.pid("manager", "h0")) else STALE_LOOKS
    cluster.check(counts["absent"] >= wanted, f"renames over a manager's restart failed: {counts}")


def test(arguments):
    checks = {
        "append": check_records_are_whole,
        "killed": check_killed_programs_die,
        "directory": check_one_directory_without_manager,
        "lanes": check_one_node_keeps_no_other,
        "silence": check_a_store_outlasts_a_silence,
        "names": lambda store: check_names_after_a_restart(store, arguments.files),
    }
    wanted = arguments.only.split(",") if arguments.only else [*checks, "closes"]
    with cluster.Cluster(arguments.bin, 3) as store:
        for name, check in checks.items():
            if name in wanted:
                check(store)
    if "closes" in wanted:
        eager = {"pattern": "broadcast:3"}
        lazy = {"replicas": "3", "ack": "pessimistic"}
        for closes, hints in ((arguments.closes, eager), (arguments.closes // 3, lazy)):
            with cluster.Cluster(arguments.bin, 3, rate="20mbit") as store:
                check_closes_keep_nobody(store, closes, **hints)


def add_arguments(parser):
    parser.add_argument("--closes", type=int, default=1500)
    parser.add_argument("--files", type=int, default=50000, help="inodes known")
    names = "append killed directory lanes silence names closes"
    parser.add_argument("--only", default="", help=f"with commas between them: {names}")


if __name__ == "__main__":
    cluster.main(test, description=__doc__, add_arguments=add_arguments)
