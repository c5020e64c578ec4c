"""Files that are read while they are written (stream=append), by ordinary programs on two hosts."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

import cluster
from full_store_test import MIB

# A writer of a pipeline's shape: bursts of output with computing between them.
SLOW = "for i in $(seq 1 8); do head -c 1500000 /dev/zero | tr '\\0' $i; sleep 0.25; done"


class Store:
    def __init__(self, store):
        self.store = store
        self.here, self.there = pathlib.Path(store.mount("h1")), pathlib.Path(store.mount("h2"))

    def expect(self, name):
        path = self.here / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        cluster.set_hint(path, "stream", "append")
        return path, self.there / name

    def start(self, command, **more):
        return subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def finish(program, seconds=30):
    out, error = program.communicate(timeout=seconds)
    return program.returncode, out, error


def check_programs(store):
    """Programs that read from begin to end get all bytes, whether they begin before or after the writer."""
    path, there = store.expect("programs/a")
    commands = [f"cat {there} | cksum", f"cksum < {there}", f"cat {there} | sort -n | cksum", f"gzip -c {there} | gzip -dc | cksum",
                f"dd if={there} bs=70001 status=none | cksum", f"cat {path} | cksum", f"cat < {there} | cksum",
                f"awk 1 {there} | tail -c 3", f"python3 -c 'import sys; sys.stdout.write(str(len(open(\"{there}\", \"rb\").read())))'"]
    readers = [store.start(command) for command in commands]
    time.sleep(0.3)
    for command, reader in zip(commands, readers):
        cluster.check(reader.poll() is None, f"{command} did not wait for a writer")
    begin = time.monotonic()
    writer = store.start(f"seq 1 200000 > {path}; sleep 1")
    time.sleep(0.1)
    readers.append(store.start(f"cat {there} | cksum"))
    cluster.check(finish(writer)[0] == 0, "the writer failed")
    results = [finish(reader) for reader in readers]
    print(f"{len(readers)} readers ended {time.monotonic() - begin:.2f} s after the writer began, which took 1 s", flush=True)
    expected = subprocess.run("seq 1 200000 | cksum", shell=True, capture_output=True, text=True, check=True).stdout
    for command, (code, out, error) in zip([*commands, "the late one"], results):
        want = "00\n" if "awk" in command else expected.split()[1] if "python3" in command else expected
        cluster.check(code == 0 and out == want, f"{command}: {code}, {out!r} instead of {want!r}, {error}")


def check_overlap(store):
    """Two stages take hardly longer than one; what was read is what was written."""
    path, there = store.expect("overlap/a")
    begin = time.monotonic()
    writer = store.start(f"({SLOW}) > {path}")
    reader = store.start(f"dd if={there} bs=100000 status=none | (while dd bs=100000 count=15 iflag=fullblock status=none | cksum | grep -v ' 0$'; "
                         "do sleep 0.2; done)")
    cluster.check(finish(writer)[0] == 0, "the writer failed")
    alone = time.monotonic() - begin
    code, out, error = finish(reader)
    both = time.monotonic() - begin
    cluster.check(code in (0, 1) and len(out.splitlines()) == 8, f"the reader got other parts: {code} {out} {error}")
    print(f"writer {alone:.2f} s; both stages {both:.2f} s; one after the other at least {alone + 8 * 0.2:.2f} s", flush=True)
    cluster.check(both < alone + 1.2, f"the stages did not overlap: {both:.2f} s")
    cluster.check(there.read_bytes() == path.read_bytes() and path.stat().st_size == 8 * 1500000, "other bytes than were written")


def check_copies(store):
    """cp and cat copy the whole stream, also within the mount, where the kernel would copy what it knows of."""
    path, there = store.expect("copies/a")
    targets = [store.there / "copies/b", store.there / "copies/c", store.here / "copies/d", pathlib.Path(store.store.directory) / "e"]
    with open(path, "wb", buffering=0) as writer:
        writer.write(b"x" * 3_000_000)
        time.sleep(0.3)
        copies = [store.start(f"cat {there} > {targets[0]}"), store.start(f"cp {there} {targets[1]}"),
                  store.start(f"cp {path} {targets[2]}"), store.start(f"cat {there} > {targets[3]}")]
        time.sleep(0.5)
        writer.write(b"y" * 2_000_000)
        time.sleep(0.2)
    for copy, target in zip(copies, targets):
        code, _, error = finish(copy)
        cluster.check(code == 0 and target.read_bytes() == path.read_bytes(), f"{target}: {code} {target.stat().st_size} {error}")


def check_soon(store):
    """What a writer has written and not closed can be read elsewhere soon."""
    path, there = store.expect("soon/a")
    reader = os.open(there, os.O_RDONLY)
    with open(path, "wb", buffering=0) as writer:
        waits = []
        for i in range(20):
            begin = time.monotonic()
            writer.write(bytes([i]))
            cluster.check(os.read(reader, 100) == bytes([i]), "another byte than was written")
            waits.append(time.monotonic() - begin)
            time.sleep(0.12)
        print(f"a byte is elsewhere after {sorted(waits)[10] * 1000:.0f} ms, at most {max(waits) * 1000:.0f}", flush=True)
        cluster.check(sorted(waits)[10] < 0.2, f"a byte took {waits}")
    cluster.check(os.read(reader, 100) == b"", "no end after the close")
    os.close(reader)


def check_many_readers(store):
    """More readers wait than the mount has workers, and the mount goes on serving others."""
    path, there = store.expect("many/a")
    readers = [store.start(f"cksum < {there}") for _ in range(80)]
    time.sleep(1)
    begin = time.monotonic()
    (store.there / "many/b").write_bytes(os.urandom(3 * MIB))
    os.listdir(store.there / "many")
    cluster.check(time.monotonic() - begin < 5, "the mount is slow while many wait")
    path.write_bytes(b"x" * 5_000_000)
    sums = {finish(reader)[1] for reader in readers}
    cluster.check(len(sums) == 1, f"the readers read differently: {sums}")


def check_killed_reader(store):
    path, there = store.expect("killed/a")
    for number in (signal.SIGKILL, signal.SIGINT):
        reader = subprocess.Popen(["cat", str(there)], stdout=subprocess.DEVNULL)
        time.sleep(0.3)
        reader.send_signal(number)
        begin = time.monotonic()
        reader.wait(10)
        took = time.monotonic() - begin
        cluster.check(took < 1.5, f"a waiting reader lived on for {took:.1f} s")
    path.write_bytes(b"x")
    cluster.check(there.read_bytes() == b"x", "no content after readers were killed")


def check_lost_writer(store):
    """A writer whose mount dies has not finished: its readers get an error, not the end."""
    path, there = store.expect("lost/a")
    reader = store.start(f"cat {there} > /dev/null")
    writer = os.open(path, os.O_WRONLY)
    os.write(writer, b"x" * 3_000_000)
    time.sleep(0.5)
    cluster.check(reader.poll() is None, "the reader has ended before its writer")
    command = store.store.kill("mount", "h1")
    code, _, error = finish(reader, 90)
    cluster.check(code != 0 and "Input/output error" in error, f"{code}: {error}")
    with contextlib.suppress(OSError):
        os.close(writer)
    store.store.start("mount", "h1", command)
    cluster.check(os.path.getsize(path) == 3_000_000, "the published bytes are gone")
    path.write_bytes(b"again")
    cluster.check(there.read_bytes() == b"again", "the file cannot be written again")


def check_rule(store):
    """A rule or a directory may say it too; what was there before the hint is whole."""
    directory = store.here / "by_directory"
    directory.mkdir()
    cluster.set_hint(directory, "stream", "append")
    with open(directory / "a", "wb", buffering=0) as writer:
        writer.write(b"begin")
        with open(store.there / "by_directory/a", "rb", buffering=0) as reader:
            cluster.check(reader.read(100) == b"begin", "the begin of an open file")
            reading = store.start("cat", stdin=reader)
            writer.write(b", end")
            time.sleep(0.5)
            cluster.check(reading.poll() is None, "the end came before the close")
            writer.close()
            cluster.check(finish(reading)[1] == ", end", "the rest")
    path = store.here / "before"
    path.write_bytes(b"whole")
    cluster.set_hint(path, "stream", "append")
    cluster.check((store.there / "before").read_bytes() == b"whole", "a whole file")
    for value in ("none", "", "Append"):
        try:
            os.setxattr(path, "user.mosa.stream", value.encode())
        except OSError:
            continue
        raise cluster.Failed(f"stream={value!r} was taken")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2, ram="512M") as running:
        store = Store(running)
        for step in (check_programs, check_overlap, check_copies, check_soon, check_many_readers, check_killed_reader, check_rule, check_lost_writer):
            print(f"== {step.__name__}", flush=True)
            step(store)


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
