"""Two mounts make files in one directory: neither is recalled for it, and each sees at once what the other has done."""

import errno
import json
import os
import time

import cluster

MADE = 300


def create(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def fails(wanted, action, *words):
    try:
        action(*words)
    except OSError as error:
        return error.errno == wanted
    return False


def recalls(store):
    return sum(json.loads(os.getxattr(store.mount(host), "user.mosa.mount"))["recalls"] for host in store.hosts)


def check_recalls(store, directories):
    """A mount that made nothing for a second, on a busy machine, is one that only looks again: it has some more."""
    before, begin = recalls(store), time.monotonic()
    for number in range(MADE):
        create(f"{directories[number % 2]}/{number}")
    seconds, count = time.monotonic() - begin, recalls(store) - before
    print(f"{MADE} files in {seconds:.2f} s, {count} recalls")
    cluster.check(count <= 8 + 8 * seconds, f"{count} recalls for {MADE} files in {seconds:.1f} s")


def check_seen(directories):
    for number in range(MADE):
        here, there = (f"{directories[(number + side) % 2]}/seen-{number}" for side in (0, 1))
        cluster.check(fails(errno.ENOENT, os.stat, there), f"{there} is there before it is made")
        create(here)
        cluster.check(fails(errno.EEXIST, create, there), f"{there} is made twice")
        if number % 3 == 0:
            os.unlink(there)
            cluster.check(fails(errno.ENOENT, os.stat, here), f"{here} is there after it was removed")
        elif number % 3 == 1:
            os.rename(there, f"{there}-moved")
            cluster.check(fails(errno.ENOENT, os.stat, here), f"{here} is there after it was moved")
            cluster.check(os.path.exists(f"{here}-moved"), f"{here}-moved is missing")


def check_attributes(directories):
    """The own changes at once, those of the other in a moment."""
    for side, path in enumerate(directories):
        before = os.stat(path).st_size
        create(f"{path}/own-{side}")
        cluster.check(os.stat(path).st_size > before, f"{path} has not grown by the own file")
        count = len(os.listdir(path))
        for other in directories:
            cluster.wait_until(lambda other=other: os.stat(other).st_size == count, 10, f"{other} of {count} entries")
    os.chmod(directories[0], 0o700)
    cluster.wait_until(lambda: os.stat(directories[1]).st_mode & 0o777 == 0o700, 10, "the new mode is seen")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store:
        directories = [f"{store.mount(host)}/shared" for host in store.hosts]
        os.mkdir(directories[0])
        check_recalls(store, directories)
        check_seen(directories)
        check_attributes(directories)
        names = [set(os.listdir(path)) for path in directories]
        cluster.check(names[0] == names[1], f"listings differ by {sorted(names[0] ^ names[1])[:5]}")


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
