"""The manager's disk is full: ENOSPC instead of the manager's end, removals go on, it starts again.

A manager with 96 MiB for its data directory and a mount, without storage nodes.
"""

import contextlib
import errno
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import cluster

FILE_BYTES = 16000
ROUNDS = 3


def content(number):
    return (b"%d " % number * FILE_BYTES)[:FILE_BYTES]


class Store:
    def __init__(self, binaries, directory, flags):
        self.binaries, self.directory, self.flags = pathlib.Path(binaries), directory, flags
        self.disk, self.mount_point = directory / "disk", directory / "mount"
        self.manager = self.mount = None
        self.address = None

    def __enter__(self):
        self.disk.mkdir()
        self.mount_point.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=96M", "mosa", self.disk], check=True, timeout=20
        )
        self.start_manager()
        self.mount = subprocess.Popen(
            [self.binaries / "mosa-mount", self.mount_point, "--manager", self.address]
        )
        cluster.wait_until(lambda: os.path.ismount(self.mount_point), 30, "the mount")
        return self

    def __exit__(self, *_):
        for process in (self.mount, self.manager):
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)
                if process.poll() is None:
                    process.kill()
        for path in (self.mount_point, self.disk):
            subprocess.run(["umount", "-l", path], capture_output=True, timeout=20, check=False)

    def start_manager(self):
        ready = self.directory / "ready"
        ready.unlink(missing_ok=True)
        listen = self.address or "127.0.0.1:0"
        command = [self.binaries / "mosa-manager", "--data-dir", self.disk / "data"]
        command += ["--listen", listen, "--ready-file", ready, *self.flags]
        self.manager = subprocess.Popen(command)

        def is_ready():
            code = self.manager.poll()
            cluster.check(code is None, f"the manager does not start: exit code {code}")
            return ready.exists()

        cluster.wait_until(is_ready, 60, "the manager's start")
        self.address = ready.read_text().split('"address":"')[1].split('"')[0]

    def fill_disk(self):
        with open(self.disk / "others", "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 16, 1 << 12, 512):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)) > 0:
                        pass


def fill(directory, limit=20000):
    """Makes files until one fails. Returns (how many were closed without an error, the errno)."""
    for number in range(limit):
        try:
            descriptor = os.open(directory / f"f{number}", os.O_CREAT | os.O_WRONLY)
        except OSError as error:
            return number, error.errno
        try:
            try:
                os.write(descriptor, content(number))
            finally:
                os.close(descriptor)
        except OSError as error:
            # Its name may stand, without bytes.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(directory / f"f{number}")
            return number, error.errno
    return limit, 0


def check_files(directory, count):
    for number in range(count):
        have = (directory / f"f{number}").read_bytes()
        cluster.check(have == content(number), f"f{number} is wrong, it has {len(have)} bytes")


def makes(path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError as error:
        cluster.check(error.errno == errno.ENOSPC, f"{path}: {error}")
        return False
    return True


def fill_and_remove(store):
    rows = []
    for number in range(ROUNDS):
        begun = time.monotonic()
        count, code = fill(store.mount_point)
        cluster.check(code == errno.ENOSPC, f"round {number}: errno {code} after {count} files")
        filled_s = time.monotonic() - begun
        cluster.check(count > (1000 if number == 0 else 100), f"round {number}: only {count} files")
        check_files(store.mount_point, count)
        for file in range(count):
            os.unlink(store.mount_point / f"f{file}")
        begun = time.monotonic()
        again = store.mount_point / f"again{number}"
        cluster.wait_until(lambda again=again: makes(again), 60, "room after removals")
        rows.append([number, count, f"{filled_s:.1f}", f"{time.monotonic() - begun:.1f}"])
    return rows


def restart_full(store):
    count, _ = fill(store.mount_point)
    store.fill_disk()
    store.manager.kill()
    store.manager.wait()
    store.fill_disk()
    store.start_manager()
    cluster.wait_until(lambda: os.path.exists(store.mount_point / "f0"), 30, "the mount's return")
    check_files(store.mount_point, count)
    os.unlink(store.disk / "others")  # With it, even a removal may have to wait for room.
    for file in range(count):
        os.unlink(store.mount_point / f"f{file}")
    cluster.wait_until(lambda: makes(store.mount_point / "more"), 60, "room after the restart")
    return count


def test(arguments):
    for what, flags in (
        ("the limit of small files", []),
        ("the disk", ["--small-files-max", "1T", "--user-share", "100"]),
    ):
        with tempfile.TemporaryDirectory(prefix="mosa-full-disk-") as directory:
            with Store(arguments.bin, pathlib.Path(directory), flags) as store:
                print(f"At the end of {what}:")
                cluster.print_table(
                    ["round", "files", "filled after s", "room again after s"],
                    fill_and_remove(store),
                )
                count = restart_full(store)
                print(f"restarted on a full disk with {count} files: all are there\n")


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
