"""A large directory: made on one mount, listed on another, removed."""

import os
import time

import cluster


def timed(what, count, action):
    begin = time.monotonic()
    result = action()
    seconds = time.monotonic() - begin
    print(f"{what}: {count} in {seconds:.1f} s, {count / seconds:.0f}/s", flush=True)
    return result


def create(directory, count):
    for number in range(count):
        os.close(os.open(f"{directory}/entry-{number:06}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def stat_all(directory):
    """Entries whose attributes can be had; a listing gives them together."""
    with os.scandir(directory) as entries:
        return sum(1 for entry in entries if entry.stat(follow_symlinks=False).st_size == 0)


def unlink(directory, count):
    for number in range(count):
        os.unlink(f"{directory}/entry-{number:06}")


def test(arguments):
    count = arguments.entries
    with cluster.Cluster(arguments.bin, 2) as store:
        here, there = (f"{store.mount(host)}/big" for host in ("h1", "h2"))
        os.mkdir(here)
        timed("create", count, lambda: create(here, count))
        wanted = {f"entry-{number:06}" for number in range(count)}
        for what, path in (("listed on the other mount", there), ("listed on the own", here)):
            names = timed(what, count, lambda path=path: os.listdir(path))
            cluster.check(len(names) == count, f"{what}: {len(names)} names instead of {count}")
            cluster.check(set(names) == wanted, f"{what}: wrong names")
        known = timed("listed with attributes", count, lambda: stat_all(there))
        cluster.check(known == count, f"{known} entries with attributes instead of {count}")
        timed("unlink on the other mount", count, lambda: unlink(there, count))
        for path in (here, there):
            cluster.check(os.listdir(path) == [], f"{path} is not empty after all was removed")
        os.rmdir(here)


if __name__ == "__main__":
    cluster.main(
        test,
        limit_s=800,
        description=__doc__,
        add_arguments=lambda parser: parser.add_argument("--entries", type=int, default=100_000),
    )
