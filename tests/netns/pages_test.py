"""What a host has read of a file stays in its memory while other hosts make, replace and remove names beside it.

Each task of a workflow makes its outputs in a directory that tasks on other hosts use as well, and many tasks read the
same input: it is to come over a host's link once, not once per task. Names stay true meanwhile: each is looked for, and
known to be absent, before another host makes it.

What a program wrote into an empty file stays in its host's memory, too: the next program there does not fetch it.

A host reads what its own programs have just written past these pages, while others of its programs open and read the
file: also with a kernel protocol from before kernels dropped pages by themselves at such a write.
"""

import json
import os
import pathlib
import threading

import cluster
from cluster import check

SIZE = 8 << 20
ROUNDS = 12
OLD_PROTOCOL = 38  # FUSE 7.39 came with Linux 6.6.
APPENDS = 100
# The first name that another host makes has the kernel forget all names, and with them pages.
READS_OVER_THE_LINK = 3


def received(store, host):
    # What a host receives, the other end of its link sends.
    return int(pathlib.Path(f"/sys/class/net/{store.host(host)['link']}/statistics/tx_bytes").read_text())


def read(path):
    size = 0
    with open(path, "rb", buffering=0) as file:
        while data := file.read(1 << 20):
            size += len(data)
    return size


def check_own_writes(store, name):
    """What is read through an open that follows a write is what was written, to the last byte."""
    path = cluster.placed_directory(f"{store.mount('h1')}/{name}", "node:h2") + "/log"
    written = b"-" * 50_000
    pathlib.Path(path).write_bytes(written)
    check(pathlib.Path(path).read_bytes() == written, "the file is not as it was written")
    over = threading.Event()

    def read_on():
        while not over.is_set():
            read(path)

    reader = threading.Thread(target=read_on)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        for number in range(APPENDS):
            if number == APPENDS // 2:
                reader.start()
            record = b"%05d " % number * 300
            os.write(descriptor, record)
            written += record
            found = pathlib.Path(path).read_bytes()
            check(len(found) == len(written), f"append {number}: {len(found)} bytes of {len(written)}")
            wrong = None if found == written else len(os.path.commonprefix([found, written]))
            check(wrong is None, f"append {number}: another byte at {wrong} of {len(written)}")
    finally:
        over.set()
        os.close(descriptor)
        if reader.ident:
            reader.join()
    there = pathlib.Path(f"{store.mount('h2')}/{name}/log").read_bytes()
    check(there == written, "the other host reads something else")
    print(f"{APPENDS} appends, {name}: read at once by their own host")


def check_written_stays(store):
    """A host does not fetch what its programs wrote, until another host changes it."""
    here = cluster.placed_directory(f"{store.mount('h1')}/written", "node:h2")
    contents = {}
    for number, (flags, piece) in enumerate(((os.O_EXCL, 1 << 20), (os.O_TRUNC, 4096))):
        path = f"{here}/{number}"
        contents[path] = os.urandom(SIZE)
        if flags == os.O_TRUNC:
            pathlib.Path(path).write_bytes(b"replaced")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
        for begin in range(0, SIZE, piece):
            os.write(descriptor, contents[path][begin:begin + piece])
        os.close(descriptor)
    before = received(store, "h1")
    for path, content in contents.items():
        check(pathlib.Path(path).read_bytes() == content, f"{path} is not as it was written")
    moved = received(store, "h1") - before
    print(f"{len(contents)} files of {SIZE} B, read where they were written: {moved} B over the link")
    check(moved < SIZE, f"{moved} B of {len(contents) * SIZE} came over the link, although this host has written them")
    for path, content in contents.items():
        there = path.replace(store.mount("h1"), store.mount("h2"), 1)
        with open(there, "r+b", buffering=0) as file:
            file.seek(SIZE // 2)
            file.write(b"another")
        changed = content[:SIZE // 2] + b"another" + content[SIZE // 2 + 7:]
        check(pathlib.Path(path).read_bytes() == changed, f"{path}: another host's change is not seen")


def check_looking_costs_nothing(store):
    """Another host looks into a directory, lists it and reads another file: this host keeps its pages."""
    here = cluster.placed_directory(f"{store.mount('h1')}/looked-at", "node:h2")
    there = here.replace(store.mount("h1"), store.mount("h2"), 1)
    for name in ("own", "other"):
        pathlib.Path(f"{here}/{name}").write_bytes(os.urandom(SIZE))
        check(read(f"{here}/{name}") == SIZE, f"{name} is not whole")
    before = received(store, "h1")
    check(sorted(os.listdir(there)) == ["other", "own"], f"h2 lists {os.listdir(there)}")
    check(os.stat(there).st_nlink >= 2 and not os.path.exists(f"{there}/absent"), "h2 sees another directory")
    check(read(f"{there}/other") == SIZE, "other is not whole on h2")
    check(read(f"{here}/own") == SIZE, "own is not whole")
    moved = received(store, "h1") - before
    print(f"a file of {SIZE} B, read again after another host has looked: {moved} B over the link")
    check(moved < SIZE // 4, f"{moved} B came over the link because another host has looked into the directory")
    pathlib.Path(f"{there}/absent").write_bytes(b"made")
    check(pathlib.Path(f"{here}/absent").read_bytes() == b"made", "h1 does not see what h2 has made")
    os.rename(f"{there}/absent", f"{there}/own")
    check(pathlib.Path(f"{here}/own").read_bytes() == b"made" and not os.path.exists(f"{here}/absent"),
          "h1 does not see what h2 has renamed")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store:
        check_looking_costs_nothing(store)
    with cluster.Cluster(arguments.bin, 2) as store:
        check_written_stays(store)
        check_own_writes(store, "own")
        command = store.kill("mount", "h1")
        store.start("mount", "h1", [*command, "--fuse-minor-max", str(OLD_PROTOCOL)])
        agreed = json.loads(os.getxattr(store.mount("h1"), "user.mosa.mount"))["fuse"]
        check(not agreed["drops_pages"], f"agreed with the kernel: {agreed}")
        check_own_writes(store, "own-old")
    with cluster.Cluster(arguments.bin, 2) as store:
        here, there = store.mount("h1"), store.mount("h2")
        cluster.placed_directory(f"{here}/in", "local")
        os.mkdir(f"{here}/out")
        with open(f"{here}/in/data", "wb") as file:
            file.write(os.urandom(SIZE))
        before = received(store, "h2")
        for number in range(ROUNDS):
            check(read(f"{there}/in/data") == SIZE, f"round {number}: the file is not whole")
            check(not os.path.exists(f"{there}/out/{number}"), f"out/{number} is there before it is made")
            pathlib.Path(f"{here}/out/new").write_text(f"{number}", encoding="ascii")
            os.rename(f"{here}/out/new", f"{here}/out/{number}")
            if number >= 2:
                os.unlink(f"{here}/out/{number - 2}")
            names = [f"{k}" for k in range(number + 1) if os.path.exists(f"{there}/out/{k}")]
            expected = [f"{k}" for k in range(max(0, number - 1), number + 1)]
            check(names == expected, f"round {number}: h2 sees {names}, h1 has made {expected}")
            text = pathlib.Path(f"{there}/out/{number}").read_text(encoding="ascii")
            check(text == f"{number}", f"out/{number} holds {text!r}")
        moved = received(store, "h2") - before
        print(f"{ROUNDS} reads of {SIZE} B: {moved} B over the link")
        check(moved >= SIZE, f"only {moved} B came over the link: the file lies on h1")
        check(moved <= READS_OVER_THE_LINK * SIZE, f"{ROUNDS} reads took {moved} B over the link, the file has {SIZE}")


if __name__ == "__main__":
    cluster.main(test, limit_s=120, description=__doc__)
