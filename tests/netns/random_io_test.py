"""Random I/O on shared files by two mounts in turn, compared with a reference in memory.

A turn opens a file on one mount, does some operations, and closes; the next turn is the other
mount's. Reads in the middle and the whole file at the start of a turn must equal the reference.
--seconds 600 and more is heavy; 15 is for every day. The seed is printed and --seed accepts it.
"""

import ctypes
import mmap
import os
import random
import time

import cluster

FILES = 4
SIZE_MAX = 3 << 20
PUNCH = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
LIBC = ctypes.CDLL(None, use_errno=True)


def fallocate(descriptor, mode, offset, length):
    done = LIBC.fallocate(descriptor, mode, ctypes.c_long(offset), ctypes.c_long(length))
    if done != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


class Shared:
    """One file and what must be in it."""

    def __init__(self, name):
        self.name = name
        self.data = bytearray()

    def write(self, offset, data):
        if len(self.data) < offset:
            self.data.extend(bytes(offset - len(self.data)))
        self.data[offset : offset + len(data)] = data


class Player:
    def __init__(self, mounts, seed):
        self.mounts = mounts
        self.choose = random.Random(seed)
        self.files = [Shared(f"f{number}") for number in range(FILES)]
        self.history = []
        self.operations = 0

    def note(self, *words):
        self.operations += 1
        self.history = [*self.history[-40:], " ".join(map(str, words))]

    def fail(self, what):
        past = "\n  ".join(self.history)
        raise cluster.Failed(f"{what}; the last operations:\n  {past}")

    def check_size(self, have, wanted, path):
        if have != wanted:
            self.fail(f"{path} has {have} bytes, must have {wanted}")

    def same(self, have, wanted, what):
        if have == wanted:
            return
        self.check_size(len(have), len(wanted), what)
        at = next(k for k, (a, b) in enumerate(zip(have, wanted)) if a != b)
        self.fail(f"{what}: wrong from byte {at} on")

    def range(self, size_max):
        """An offset and a length: often small, sometimes across chunks."""
        length = self.choose.choice((1, 100, 4096, 5000, 70_000, 300_000, 1_100_000))
        length = self.choose.randint(1, length)
        return self.choose.randint(0, size_max), length

    def turn(self, mount):
        shared = self.choose.choice(self.files)
        path = f"{mount}/{shared.name}"
        flags = os.O_RDWR | os.O_CREAT
        if self.choose.random() < 0.05:
            flags |= os.O_TRUNC
            shared.data.clear()
        self.note("open", path, "truncating" if flags & os.O_TRUNC else "")
        descriptor = os.open(path, flags, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            self.check_size(size, len(shared.data), path)
            self.same(self.read(descriptor, 0, SIZE_MAX * 2), bytes(shared.data), f"all of {path}")
            for _ in range(self.choose.randint(0, 6)):
                self.operation(descriptor, path, shared)
        finally:
            os.close(descriptor)

    def read(self, descriptor, offset, length):
        parts = []
        while length > 0 and (part := os.pread(descriptor, min(length, 1 << 20), offset)):
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def operation(self, descriptor, path, shared):
        kinds = ("write", "write", "write", "read", "append", "truncate", "punch", "map", "sync")
        kind = self.choose.choice(kinds)
        size = len(shared.data)
        offset, length = self.range(min(size + 10_000, SIZE_MAX - 1))
        length = min(length, SIZE_MAX - offset)
        self.note(kind, path, offset, length, "of", size)
        if kind == "write" or (kind == "append" and size + length <= SIZE_MAX):
            offset = size if kind == "append" else offset
            data = self.choose.randbytes(length)
            self.all_written(descriptor, data, offset)
            shared.write(offset, data)
        elif kind == "read":
            wanted = bytes(shared.data[offset : offset + length])
            self.same(self.read(descriptor, offset, length), wanted, f"{path} at {offset}")
        elif kind == "truncate":
            os.ftruncate(descriptor, offset)
            del shared.data[offset:]
            shared.data.extend(bytes(offset - len(shared.data)))
        elif kind == "punch":
            fallocate(descriptor, PUNCH, offset, length)
            end = min(offset + length, size)
            if offset < end:
                shared.data[offset:end] = bytes(end - offset)
        elif kind == "map" and size > 0:
            self.map(descriptor, path, shared)
        elif kind == "sync":
            os.fsync(descriptor)

    def all_written(self, descriptor, data, offset):
        view = memoryview(data)
        while view:
            count = os.pwrite(descriptor, view, offset)
            view, offset = view[count:], offset + count

    def map(self, descriptor, path, shared):
        with mmap.mmap(descriptor, len(shared.data)) as mapped:
            self.same(mapped[:], bytes(shared.data), f"{path} mapped")
            offset = self.choose.randrange(len(shared.data))
            data = self.choose.randbytes(min(5000, len(shared.data) - offset))
            mapped[offset : offset + len(data)] = data
            mapped.flush()
            shared.write(offset, data)

    def rename(self, mount):
        a, b = self.choose.sample(self.files, 2)
        self.note("rename", f"{mount}/{a.name}", b.name)
        if os.path.exists(f"{mount}/{a.name}"):
            os.rename(f"{mount}/{a.name}", f"{mount}/{b.name}")
            b.data, a.data = a.data, bytearray()


def test(arguments):
    seed = arguments.seed if arguments.seed is not None else random.randrange(1 << 32)
    print(f"--seed {seed}", flush=True)
    with cluster.Cluster(arguments.bin, 2, flags=arguments.flags.split()) as store:
        mounts = [f"{store.mount(host)}/shared" for host in ("h1", "h2")]
        os.mkdir(mounts[0])
        player = Player(mounts, seed)
        end = time.monotonic() + arguments.seconds
        turns = 0
        while time.monotonic() < end:
            mount = mounts[turns % 2]
            player.turn(mount)
            if player.choose.random() < 0.1:
                player.rename(mount)
            turns += 1
        print(f"{turns} turns, {player.operations} operations in {arguments.seconds} s")
        cluster.check(turns > arguments.seconds, "hardly anything was tried")


def add_arguments(parser):
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--flags", default="", help="of mosa cluster up")


if __name__ == "__main__":
    cluster.main(test, limit_s=3700, description=__doc__, add_arguments=add_arguments)
