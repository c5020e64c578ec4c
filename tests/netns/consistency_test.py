"""What one mount did, the other sees at once: close-to-open without a stale window.

Every round one mount writes, replaces, renames and removes, and after each step the other one looks
at once, with whatever it had cached before. The mounts change sides every round.
"""

import errno
import os
import time

import cluster

SIZES = (0, 37, 1024, 16 * 1024, 16 * 1024 + 1, 300_000)


def put(path, data):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def get(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def is_absent(path):
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ENOENT
    return False


def content(number, step, size):
    word = b"%d.%d." % (number, step)
    return (word * (size // len(word) + 1))[:size]


class Rounds:
    """Counts what was stale."""

    def __init__(self, writer, reader):
        self.writer, self.reader = writer, reader
        self.stale = []
        self.looks = 0

    def look(self, number, what, condition):
        self.looks += 1
        if not condition:
            self.stale.append(f"round {number}: {what}")

    def see_file(self, number, what, name, data):
        path = f"{self.reader}/{name}"
        try:
            self.look(number, f"{what}: size", os.stat(path).st_size == len(data))
            self.look(number, f"{what}: bytes", get(path) == data)
        except FileNotFoundError:
            self.look(number, f"{what}: absent", False)

    def run(self, number):
        writer, reader = self.writer, self.reader
        name, other = f"f{number}", f"g{number}"
        size = SIZES[number % len(SIZES)]
        first, second = content(number, 1, size), content(number, 2, size // 2 + 11)
        self.look(number, "absent before", is_absent(f"{reader}/{name}"))
        put(f"{writer}/{name}", first)
        self.see_file(number, "made", name, first)
        put(f"{writer}/{name}", second)
        self.see_file(number, "rewritten", name, second)
        put(f"{writer}/{other}", first)
        self.see_file(number, "the other made", other, first)
        os.rename(f"{writer}/{name}", f"{writer}/{other}")
        self.look(number, "old name after rename", is_absent(f"{reader}/{name}"))
        self.see_file(number, "renamed over", other, second)
        os.truncate(f"{writer}/{other}", 5)
        self.see_file(number, "truncated", other, second[:5])
        os.chmod(f"{writer}/{other}", 0o600)
        self.look(number, "mode", os.stat(f"{reader}/{other}").st_mode & 0o777 == 0o600)
        self.look(number, "listed", other in os.listdir(reader))
        os.mkdir(f"{writer}/d{number}")
        self.look(number, "directory made", os.path.isdir(f"{reader}/d{number}"))
        os.rmdir(f"{writer}/d{number}")
        self.look(number, "directory removed", is_absent(f"{reader}/d{number}"))
        os.unlink(f"{writer}/{other}")
        self.look(number, "removed", is_absent(f"{reader}/{other}"))
        self.look(number, "not listed", other not in os.listdir(reader))
        self.writer, self.reader = reader, writer


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store:
        directories = [f"{store.mount(host)}/rounds" for host in ("h1", "h2")]
        os.mkdir(directories[0])
        rounds = Rounds(*directories)
        times = []
        for number in range(arguments.rounds):
            begin = time.monotonic()
            rounds.run(number)
            times.append(time.monotonic() - begin)
        print(
            f"{arguments.rounds} rounds, {rounds.looks} looks, {len(rounds.stale)} stale; "
            f"per round median {cluster.percentile(times, 0.5) * 1e3:.2f} ms, "
            f"99 % {cluster.percentile(times, 0.99) * 1e3:.2f} ms, "
            f"longest {max(times) * 1e3:.2f} ms"
        )
        cluster.check(not rounds.stale, "; ".join(rounds.stale[:5]))


if __name__ == "__main__":
    cluster.main(
        test,
        description=__doc__,
        add_arguments=lambda parser: parser.add_argument("--rounds", type=int, default=1000),
    )
