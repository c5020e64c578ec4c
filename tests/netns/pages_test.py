"""What a host has read of a file stays in its memory while other hosts make, replace and remove names beside it.

Each task of a workflow makes its outputs in a directory that tasks on other hosts use as well, and many tasks read the
same input: it is to come over a host's link once, not once per task. Names stay true meanwhile: each is looked for, and
known to be absent, before another host makes it.
"""

import os
import pathlib

import cluster
from cluster import check

SIZE = 8 << 20
ROUNDS = 12
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


def test(arguments):
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
    cluster.main(test, limit_s=60, description=__doc__)
