"""Files that programs store into through mappings, or that kernels write by themselves, are the same on every host.

A program maps a file, closes its descriptor, and stores into the mapping: nobody tells the mount. Two hosts; the kernel
of the first one reads and writes the objects by itself (passthrough), which each check makes sure of. A mapper is a
process of its own: the parent tells it what to do next, one word per line.
"""

import ctypes
import errno
import hashlib
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time

import cluster
from cluster import check, wait_until
from consistency_test import put

SIZE = 1 << 20
SEEN_S = 20  # A second when the machine is not busy.
NOBODY = 65534
MS_SYNC = 4
FORGOTTEN_S = 8  # The manager has ended the session of a mount that was killed.
SEALED_S = 1.5  # A node has summed what was written.


def digest(path):
    with open(path, "rb", buffering=0) as file:
        return hashlib.md5(file.readall()).hexdigest()


def content(letter, size=SIZE):
    return hashlib.md5(letter.encode() * size).hexdigest()


# ---- the mapper: Python's mmap keeps a descriptor of its own, so the call is the C library's


class Mapping:
    def __init__(self, path, size=SIZE):
        self.library = ctypes.CDLL(None, use_errno=True)
        self.library.mmap.restype = ctypes.c_void_p
        self.library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        self.size = size
        self.descriptor = os.open(path, os.O_RDWR)
        self.address = self.library.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED,
                                         self.descriptor, 0)
        if self.address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), f"cannot map {path}")

    def read(self):
        """So that stores fault no page any more, and leave no trace in the object's times."""
        return ctypes.string_at(self.address, self.size).count(b"A")

    def close(self):
        os.close(self.descriptor)

    def store(self, letter):
        ctypes.memset(self.address, ord(letter), self.size)

    def sync(self):
        self.library.msync(ctypes.c_void_p(self.address), ctypes.c_size_t(self.size), MS_SYNC)

    def unmap(self):
        self.library.munmap(ctypes.c_void_p(self.address), ctypes.c_size_t(self.size))


def serve_mapper(path):
    mapping = Mapping(path)
    print("mapped", flush=True)
    for line in sys.stdin:
        word, *arguments = line.split()
        getattr(mapping, word)(*arguments)
        print(word, flush=True)


class Mapper:
    """A mapping in another process, whose end may come without a close."""

    def __init__(self, path):
        self.process = subprocess.Popen([sys.executable, __file__, "--mapper", path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self._await("mapped")

    def _await(self, word):
        answer = self.process.stdout.readline().strip()
        check(answer == word, f"the mapper answers {answer!r} to {word}")

    def __call__(self, *words):
        for line in words:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            self._await(line.split()[0])

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


# ---- checks


def passthrough_opens(mount):
    return json.loads(os.getxattr(mount, "user.mosa.mount"))["opens_passthrough"]


def passed(mount, what):
    """For `with`: what is opened inside must have been opened by passthrough."""

    class Passed:
        def __enter__(self):
            self.before = passthrough_opens(mount)

        def __exit__(self, kind, *_):
            if kind is None:
                check(passthrough_opens(mount) > self.before, f"{what}: passthrough was not used")

    return Passed()


def describe(path):
    """What every host reads of the file, with and without the kernel's pages, and what their mounts say."""
    root, name = path.split("/mount/")
    known = {content(each): each for each in "ABCDEFGHIJK"}
    for host in ("h1", "h2"):
        mount = f"{os.path.dirname(root)}/{host}/mount"
        descriptor = os.open(f"{mount}/{name}", os.O_RDONLY | os.O_DIRECT)
        memory = mmap.mmap(-1, SIZE)
        os.readv(descriptor, [memory])
        os.close(descriptor)
        direct = hashlib.md5(memory[:SIZE]).hexdigest()
        print(f"{host} reads {known.get(digest(f'{mount}/{name}'), 'a mix')}, directly {known.get(direct, 'a mix')};",
              os.getxattr(f"{mount}/{name}", "user.mosa.layout").decode(), os.getxattr(mount, "user.mosa.mount").decode())


def seen(path, letter, what, seconds=SEEN_S):
    begin = time.monotonic()
    try:
        wait_until(lambda: digest(path) == content(letter), seconds, f"{what}: {path} holds {letter}")
    except cluster.Failed:
        describe(path)
        raise
    print(f"{what}: seen after {time.monotonic() - begin:.2f} s", flush=True)


def new_file(store, directory, letter="A", **hints):
    path = cluster.placed_directory(f"{store.mount('h1')}/{directory}", "node:h1") + "/f"
    for name, value in hints.items():
        cluster.set_hint(os.path.dirname(path), name, value)
    put(path, letter.encode() * SIZE)
    other = f"{store.mount('h2')}/{directory}/f"
    check(digest(other) == content(letter), "the other host reads something else from the start")
    time.sleep(SEALED_S)
    return path, other


def answers(mount):
    try:
        os.statvfs(mount)
        return True
    except OSError:
        return False


def check_pages_written_behind_the_last_close(store):
    """A mapping without passthrough, while the manager is away longer than a request waits.

    The mount keeps the bytes only if it holds room on the node. If it must give them up, it says so.
    """
    path, other = new_file(store, "pages")
    far = f"{store.mount('h2')}/pages/f"  # Its bytes are on h1: h2 has them by its pages.
    mapping = Mapping(far)
    mapping.read()
    mapping.close()
    mapping.store("B")
    pid = store.pid("manager", "h0")
    cluster.stop(pid)
    try:
        unmapper = threading.Thread(target=mapping.unmap)
        unmapper.start()
        time.sleep(25)
    finally:
        os.kill(pid, signal.SIGCONT)
    unmapper.join(60)
    wait_until(lambda: answers(store.mount("h2")), 30, "the session is back")
    stats = json.loads(os.getxattr(store.mount("h2"), "user.mosa.mount"))
    unsaved = stats["files"]["unsaved"]
    print(f"unsaved: {unsaved}, kept: {stats['kept']}", flush=True)
    if os.stat(path).st_ino in unsaved:
        for where in (path, other):
            check(digest(where) == content("A"), f"{where} has a part of what is named as unsaved")
    else:
        seen(path, "B", "pages of a time without a manager", 60)


def check_stores_behind_close(store):
    """open, mmap, close, store, munmap: the usual idiom, in one go and with a pause."""
    path, other = new_file(store, "behind")
    for letter, pause in (("B", 0), ("C", 2.5)):
        written = os.stat(other).st_mtime_ns
        with passed(store.mount("h1"), "a mapping"):
            mapping = Mapping(path)
        mapping.read()
        mapping.close()
        time.sleep(pause)
        mapping.store(letter)
        mapping.sync()
        mapping.unmap()
        seen(other, letter, f"stores {pause} s behind close")
        # Bytes that the other host had not kept are read where they lie, before they are committed.
        for name in (path, other):
            wait_until(lambda name=name, then=written: os.stat(name).st_mtime_ns > then, SEEN_S,
                       f"{name}: a newer time of change")
        check(digest(path) == content(letter), "the writer's own mount reads something else")


def check_stores_before_close(store):
    """Whoever opens the file after close returned sees it, though the kernel noted no time."""
    path, other = new_file(store, "before")
    for letter in "BCDEFGHIJK":
        mapping = Mapping(path)
        mapping.read()
        mapping.store(letter)
        mapping.unmap()
        mapping.close()
        check(digest(other) == content(letter), f"after close the other host does not read {letter}")


def check_a_long_mapping(store):
    """Stores are seen while the mapping lives on, again and again."""
    path, other = new_file(store, "long")
    for closes in (False, True):
        mapping = Mapping(path)
        mapping.read()
        if closes:
            mapping.close()
        for letter in "BCD":
            mapping.store(letter)
            mapping.sync()
            seen(other, letter, f"a mapping that lives on, {'closed' if closes else 'open'}")
            check(digest(path) == content(letter), "the writer's own mount reads something else")
        mapping.unmap()
        if not closes:
            mapping.close()


def check_an_idle_mapping_changes_nothing(store):
    """Who opens for reading and writing and only reads makes nobody read anew, and nothing newer."""
    path, other = new_file(store, "idle")
    before = os.stat(other)
    version = json.loads(os.getxattr(other, "user.mosa.layout"))
    mapping = Mapping(path)
    check(mapping.read() == SIZE, "the mapping shows something else")
    time.sleep(3)
    mapping.close()
    time.sleep(2)
    mapping.unmap()
    time.sleep(2)
    check(os.stat(other).st_mtime_ns == before.st_mtime_ns, "the time of change moved")
    after = json.loads(os.getxattr(other, "user.mosa.layout"))
    check(after.get("data_version") == version.get("data_version"), f"the version moved: {version}, {after}")


def check_times_that_were_set(store):
    """As `cp -p` and `rsync -t` do: what was set after the close stays."""
    path, other = new_file(store, "times")
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, b"B" * SIZE, 0)
    os.close(descriptor)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    time.sleep(3)
    check(digest(other) == content("B"), "the other host reads something else")
    for name in (path, other):
        found = os.stat(name).st_mtime
        check(found == 1_000_000_000, f"{name}: the time that was set is gone: {found}, {time.time() - found:.2f} s ago")


def check_a_killed_mapper(store):
    path, other = new_file(store, "killed")
    mapper = Mapper(path)
    mapper("read", "close", "store B")
    mapper.process.kill()
    mapper.process.wait()
    seen(other, "B", "a mapper that was killed")


def copies(path):
    return json.dumps(json.loads(os.getxattr(path, "user.mosa.layout"))).count('"valid"')


def kept(mount):
    return json.loads(os.getxattr(mount, "user.mosa.mount"))["kept"]


def check_a_killed_mount(store):
    """Its program maps on, and ends: nobody but the node can tell."""
    path, other = new_file(store, "orphan")
    mapper = Mapper(path)
    mapper("read", "close")
    wait_until(lambda: kept(store.mount("h1")) == 1, 10, "the mount knows of the close")
    command = store.kill("mount", "h1")
    time.sleep(FORGOTTEN_S)
    check(digest(other) == content("A"), "the other host reads something else before the stores")
    mapper("store B")
    mapper.end()
    seen(other, "B", "stores behind the death of the mount", 60)
    store.start("mount", "h1", command)
    check(digest(path) == content("B"), "the host of the mount that was killed reads something else")


def check_a_mount_killed_in_an_open(store):
    """The kernel holds the object open for what is left of the dead mount until that is unmounted."""
    path, other = new_file(store, "open_orphan")
    mapper = Mapper(path)
    mapper("read")
    command = store.kill("mount", "h1")
    time.sleep(FORGOTTEN_S)
    mapper("store B")
    mapper.end()
    time.sleep(FORGOTTEN_S)
    subprocess.run(["umount", "-l", store.mount("h1")], check=True)
    seen(other, "B", "stores of a program that a mount's death found in an open", 60)
    store.start("mount", "h1", command)
    check(digest(path) == content("B"), "the host of the mount that was killed reads something else")


def check_copies_follow(store):
    """With two copies and the first one's node dying afterwards the stores are there."""
    path, other = new_file(store, "copies", replicas="2")
    wait_until(lambda: copies(other) == 1, 60, "the copy of the first content")
    mapping = Mapping(path)
    mapping.read()
    mapping.close()
    time.sleep(1.5)
    mapping.store("B")
    mapping.unmap()
    seen(other, "B", "stores into a file with two copies")
    wait_until(lambda: copies(other) == 1, 60, "the copy of what was stored")
    time.sleep(1)
    command = store.kill("storage", "h1")
    seen(other, "B", "the copy that is left", 60)
    store.start("storage", "h1", command)
    wait_until(lambda: digest(path) == content("B"), 60, "the first copy again")


def check_a_mapping_beside_a_reader(store):
    """The kernel maps the object for every open while a reader has it; the mount sees the other calls of such an open."""
    path, other = new_file(store, "beside", replicas="2")
    wait_until(lambda: copies(other) == 1, 60, "the copy of the first content")
    os.chmod(path, 0o6755)  # So that writes reach the mount.
    for letter, reader_closes_first in (("B", True), ("C", False)):
        with passed(store.mount("h1"), "a reader"):
            reader = os.open(path, os.O_RDONLY)
        before = passthrough_opens(store.mount("h1"))
        mapping = Mapping(path)
        check(passthrough_opens(store.mount("h1")) == before, "writes by this open do not reach the mount")
        mapping.read()
        if reader_closes_first:
            os.close(reader)
        mapping.store(letter)
        mapping.close()
        mapping.unmap()
        if not reader_closes_first:
            os.close(reader)
        seen(other, letter, f"stores beside a reader, who closes {'first' if reader_closes_first else 'last'}")
        wait_until(lambda: copies(other) == 1, 60, "the copy of what was stored")
        for where in (path, other):
            check(digest(where) == content(letter), f"{where} is not what was stored")


def check_a_mapping_beside_a_reader_of_a_copy(store):
    """Stores into a further copy would reach nobody else, so an open that might map it is refused."""
    path, other = new_file(store, "copy", replicas="2")
    wait_until(lambda: copies(other) == 1, 60, "the copy")
    with passed(store.mount("h2"), "a reader of the copy"):
        reader = os.open(other, os.O_RDONLY)
    try:
        os.close(os.open(other, os.O_RDWR))
        check(False, "an open that could map the copy for writing was not refused")
    except OSError as error:
        check(error.errno == errno.EBUSY, f"open: {error}")
    descriptor = os.open(other, os.O_WRONLY)
    os.pwrite(descriptor, b"B" * SIZE, 0)
    os.close(descriptor)
    seen(path, "B", "a write beside a reader of a copy")
    os.close(reader)
    with open(other, "r+b") as file, mmap.mmap(file.fileno(), SIZE) as mapping:
        mapping[:] = b"C" * SIZE
    seen(path, "C", "a mapping after the reader of the copy")


def check_opens_one_after_the_other(store):
    """The kernel refuses an open with a backing file beside mapped pages, and the other way round."""
    path, other = new_file(store, "opens")
    for flags in (os.O_RDWR | os.O_APPEND, os.O_RDWR | os.O_DIRECT):
        writer = os.open(path, flags)
        with mmap.mmap(writer, SIZE) as mapping:
            reader = os.open(path, os.O_RDONLY)
            mapping[:] = b"B" * SIZE
        os.close(reader)
        reader = os.open(path, os.O_RDONLY)
        with mmap.mmap(writer, SIZE) as mapping:
            mapping[:] = b"C" * SIZE
        os.close(reader)
        os.close(writer)
        seen(other, "C", "stores through a descriptor that bypasses pages")
    # A mapping lives on without an open, and its object stays the backing file.
    mapping = Mapping(path)
    mapping.read()
    mapping.close()
    time.sleep(1)
    writer = os.open(path, os.O_RDWR | os.O_APPEND)
    with mmap.mmap(writer, SIZE) as other_mapping:
        mapping.store("D")
        check(other_mapping[:4] == b"DDDD", f"two mappings on one host differ: {other_mapping[:4]}")
        reader = os.open(path, os.O_RDONLY)
        check(os.pread(reader, 4, 0) == b"DDDD", "a reader beside two mappings")
        os.close(reader)
        other_mapping[:] = b"C" * SIZE
    os.close(writer)
    mapping.unmap()
    seen(other, "C", "stores of two mappings")
    wait_until(lambda: kept(store.mount("h1")) == 0, 30, "the end of both mappings")
    with passed(store.mount("h1"), "a reader"):
        reader = os.open(path, os.O_RDONLY)
    writer = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.close(reader)
    for flags in (os.O_RDWR | os.O_APPEND, os.O_RDWR, os.O_RDONLY):
        descriptor = os.open(path, flags)
        check(os.pread(descriptor, 4, 0) == b"CCCC", "a reader after the backing file's first reader")
        os.close(descriptor)
    os.close(writer)


def check_a_dropped_object(store):
    """A mapping is never of an object that the node has dropped, while an old reader still has it."""
    path, other = new_file(store, "dropped", replicas="2")
    wait_until(lambda: copies(other) == 1, 60, "the copy")
    with passed(store.mount("h2"), "a reader of the copy"):
        reader = os.open(other, os.O_RDONLY)
    cluster.set_hint(path, "replicas", "1")
    wait_until(lambda: os.getxattr(path, "user.mosa.location") == b"h1", 60, "the copy goes")
    time.sleep(2)
    check(digest(other) == content("A"), "what has not changed cannot be read")
    put(path, b"B" * SIZE)
    for flags in (os.O_RDWR, os.O_RDONLY):
        try:
            descriptor = os.open(other, flags)
        except OSError as error:
            check(error.errno == errno.EBUSY, f"open: {error}")
            continue
        mapped = mmap.mmap(descriptor, SIZE, prot=mmap.PROT_READ)[:4]
        read = os.pread(descriptor, 4, 0)
        os.close(descriptor)
        check(mapped == read == b"BBBB", f"one descriptor reads {read} and maps {mapped}")
    descriptor = os.open(other, os.O_WRONLY)
    os.pwrite(descriptor, b"B" * SIZE, 0)
    os.close(descriptor)
    os.close(reader)
    with open(other, "r+b") as file, mmap.mmap(file.fileno(), SIZE) as mapping:
        check(mapping[:4] == b"BBBB", f"the mapping shows {mapping[:4]}")
        mapping[:] = b"C" * SIZE
    seen(path, "C", "stores of the host that had the copy")


def as_nobody(change, path):
    """Runs change(path) as an ordinary user."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            change(path)
            os._exit(0)
        except OSError as error:
            print(f"as nobody: {error}", flush=True)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    check(status == 0, f"a change of {path} as nobody failed")


def opened_with(flags, change):
    def run(path):
        descriptor = os.open(path, flags)
        change(path, descriptor)
        os.close(descriptor)

    return run


def become_set_user_id_and_write(path, descriptor):
    os.chmod(path, 0o6755)
    os.pwrite(descriptor, b"x", 0)


CHANGES = {
    "write": opened_with(os.O_WRONLY, lambda _, descriptor: os.pwrite(descriptor, b"x", 0)),
    "write and read": opened_with(os.O_RDWR, lambda _, descriptor: os.pwrite(descriptor, b"x", 0)),
    "append": opened_with(os.O_WRONLY | os.O_APPEND, lambda _, descriptor: os.write(descriptor, b"x")),
    "open and cut": opened_with(os.O_WRONLY | os.O_TRUNC, lambda *_: None),
    "truncate": lambda path: os.truncate(path, 5),
    "fallocate": opened_with(os.O_RDWR, lambda _, descriptor: os.posix_fallocate(descriptor, 0, 8192)),
    "write, open since before": opened_with(os.O_WRONLY, become_set_user_id_and_write),
}


def check_set_user_id(store):
    """As POSIX asks: a write by one without privileges takes the bits, and every mount knows."""
    path, other = new_file(store, "bits")
    os.chown(path, NOBODY, NOBODY)
    for name, change in CHANGES.items():
        for opened in (False, True):  # By somebody who keeps the attributes in the kernel's cache.
            put(path, b"A" * SIZE)
            os.chmod(path, 0o755 if "before" in name else 0o6755)
            reader = os.open(path, os.O_RDONLY) if opened else None
            os.stat(path), os.stat(other)
            as_nobody(change, path)
            for where in (path, other):
                mode = os.stat(where).st_mode & 0o7777
                check(mode == 0o755, f"{name}: {where} has mode {mode:o}")
            if reader is not None:
                os.close(reader)
    os.chmod(path, 0o6755)
    os.stat(path)
    with open(path, "r+b", buffering=0) as file:
        file.write(b"x")
    check(os.stat(other).st_mode & 0o7777 == 0o6755, "root's write took the bits, which root may keep")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2, ram="4G", flags=["--allow-other"]) as store:
        if not json.loads(os.getxattr(store.mount("h1"), "user.mosa.mount"))["fuse"]["passthrough"]:
            raise cluster.Skipped("the kernel has no passthrough")
        checks = [value for name, value in globals().items() if name.startswith("check_")]
        for one in checks:
            if arguments.only and arguments.only not in one.__name__:
                continue
            begin = time.monotonic()
            one(store)
            print(f"{one.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--mapper"]:
        serve_mapper(sys.argv[2])
    else:
        cluster.main(
            test,
            limit_s=600,
            add_arguments=lambda parser: parser.add_argument("--only", help="checks whose name has this"),
            description=__doc__,
        )
