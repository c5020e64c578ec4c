"""`mosa trace wrap` on a real directory: programs see the directory as it is, and the trace is what they did, as a
workload that can be predicted. What cannot be wrapped is one sentence and an exit code.

    trace_wrap_test.py --mosa PROGRAM --battery PROGRAM
"""

import argparse
import contextlib
import errno
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from predict_test import PLATFORM, check, good, run

SKIPPED = 77
END_S = 60
LIMIT_S = 240
NOBODY = 65534
# Which others than its owner can run, too.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def unmount(mount, *lazily):
    """By root with the first of the options, by others with the second."""
    words = ["umount", *lazily[:1]] if os.geteuid() == 0 else ["fusermount3", "-u", *lazily[1:]]
    return subprocess.run([*words, mount], check=False, capture_output=True)


class Wrapped:
    """A directory that is wrapped while this lives; `end` ends it, and returns what it says then."""

    def __init__(self, mosa, directory, mount, trace):
        self.mount = pathlib.Path(mount)
        self.process = subprocess.Popen([mosa, "--json", "trace", "wrap", directory, mount, "-o", trace], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first_line = self.process.stderr.readline()
        check(self.first_line.startswith("Tracing "), f"it begins: {self.first_line}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        # A wrapper that was killed leaves a dead mount.
        unmount(self.mount, "-l", "-z")

    def end(self, how):
        how()
        output, errors = self.process.communicate(timeout=END_S)
        check(self.process.returncode == 0 and not errors, f"ended with {self.process.returncode}: {errors}")
        check(not os.path.ismount(self.mount), "nothing is mounted")
        return json.loads(output)

    def unmount(self):
        return self.end(lambda: check(unmount(self.mount).returncode == 0, "it can be unmounted"))

    def terminate(self):
        return self.end(self.process.terminate)

    def task(self, name, command, **options):
        environment = {**os.environ, "MOSA_TASK": name}
        done = subprocess.run(["sh", "-ec", command], cwd=self.mount, env=environment, capture_output=True, text=True,
                              timeout=60, check=False, **options)
        check(done.returncode == 0, f"{name}: {done.stderr}")
        return done.stdout


class Place:
    """Directories for one test: what is wrapped, where it is mounted, and a name for the trace."""

    def __init__(self, directory, name):
        self.directory, self.mount, self.trace = (directory / f"{name}.{part}" for part in ("real", "mount", "trace"))
        self.directory.mkdir()
        self.mount.mkdir()

    def wrap(self, mosa):
        return Wrapped(mosa, self.directory, self.mount, self.trace)


def test_workflow(mosa, directory):
    """The graph is that of the commands, whatever their files were called, linked to or removed."""
    place = Place(directory, "workflow")
    (place.directory / "book").write_bytes(b"one line of the book\n" * 50_000)
    with place.wrap(mosa) as wrapped:
        wrapped.task("make", "mkdir dir && head -n 20000 book > dir/part")
        wrapped.task("left", "grep -n 1 dir/part > left.new || true; cat dir/part > left.new; mv left.new left")
        wrapped.task("again", "ln left twin && cat twin > copy")
        # A file that is gone, and another one that may have its inode.
        wrapped.task("brief", "head -c 3000 /dev/zero > brief; exec 3<> brief; rm brief; cat <&3 > /dev/null; echo end >&3")
        wrapped.task("other", "head -c 5000 /dev/zero > other")
        wrapped.task("join", "cat left copy other > dir/joined")
        ended = wrapped.terminate()
    check(ended["end"] == "stopped" and ended["dropped"] == 0 and ended["file"] == str(place.trace), f"{ended}")
    size = 20_000 * len("one line of the book\n")
    check((place.directory / "dir/joined").stat().st_size == 2 * size + 5000, "what was done was done in the directory")

    output = directory / "workflow.json"
    made = json.loads(good(mosa, "--json", "trace", "workload", place.trace, "-o", output).stdout)
    check(made["whole"], f"{made}")
    specification = json.loads(output.read_text())["workflow"]["specification"]

    def left(name):
        """A file with two names is called by either."""
        return "left" if name == "twin" else name

    tasks = {task["id"]: ([left(name) for name in task["inputFiles"]], [left(name) for name in task["outputFiles"]],
                          sorted(task["parents"])) for task in specification["tasks"]}
    check(tasks == {"make": (["book"], ["dir/part"], []),
                    "left": (["dir/part"], ["left"], ["make"]),
                    "again": (["left"], ["copy"], ["left"]),
                    "brief": ([], ["brief"], []),
                    "other": ([], ["other"], []),
                    "join": (["left", "copy", "other"], ["dir/joined"], ["again", "left", "other"])}, f"{tasks}")
    sizes = {left(file["id"]): file["sizeInBytes"] for file in specification["files"]}
    check(sizes == {"book": 1_050_000, "dir/part": size, "left": size, "copy": size, "brief": 3004, "other": 5000,
                    "dir/joined": 2 * size + 5000}, f"{sizes}")

    rows = json.loads(good(mosa, "--json", "trace", "show", place.trace).stdout)["rows"]
    moved = {(row["task"], left(row["path"])): (row["bytes_read"], row["bytes_written"]) for row in rows}
    check(moved["join", "left"] == (size, 0) and moved["join", "dir/joined"] == (0, 2 * size + 5000), f"{moved}")
    check(moved["brief", "brief"] == (3000, 3004), f"{moved}")
    check(not any(row["estimated"] for row in rows), "all of it was seen")
    return output, made["operations"]


def test_prediction(mosa, output, operations):
    words = ["--json", "predict", "--platform", PLATFORM, "--workload", output, "--config", "hosts=2", "--repeats", 0]
    answer = json.loads(good(mosa, *words, "--operations", operations).stdout)
    written = {task["id"]: task["bytes_written"] for task in answer["tasks"]}
    check(answer["failure"] is None and written["other"] == 5000, f"{written}")
    profile = json.loads(good(mosa, "--json", "envelope", "profile", "--workload", output, "--operations", operations).stdout)
    check(profile, "a profile of it")


def test_files(mosa, directory, battery):
    """What POSIX says, and what others do in the directory meanwhile."""
    place = Place(directory, "files")
    with place.wrap(mosa) as wrapped:
        subprocess.run([battery, place.mount], check=True, timeout=240)
        here, there = place.mount / "file", place.directory / "file"
        content = os.urandom(3_000_001)
        here.write_bytes(content)
        check(there.read_bytes() == content and here.stat().st_ino == there.stat().st_ino, "it is the same file")
        there.write_bytes(b"from outside")
        check(here.read_bytes() == b"from outside", "what is done in the directory is seen")
        there.rename(place.directory / "renamed")
        check(not here.exists() and (place.mount / "renamed").exists(), "and what is renamed")
        (place.mount / "many").mkdir()
        names = {f"name{i:05}" for i in range(3000)}
        for name in names:
            (place.directory / "many" / name).touch()
        check(set(os.listdir(place.mount / "many")) == names, "long lists are whole")
        test_growing(place)
        with open(place.mount / "renamed") as one, open(place.mount / "renamed") as other:
            fcntl.flock(one, fcntl.LOCK_EX)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                check(False, "a lock is held")
        if os.geteuid() == 0:
            os.chmod(place.directory, 0o777)
            wrapped.task("nobody", "umask 027; echo mine > mine; mkdir -m 700 own; ln -s mine link", user=NOBODY,
                         group=NOBODY, extra_groups=[])
            for name, mode in (("mine", 0o100640), ("own", 0o40700), ("link", 0o120777)):
                status = os.lstat(place.directory / name)
                check((status.st_uid, status.st_gid, status.st_mode) == (NOBODY, NOBODY, mode), f"{name}: {status}")
            test_rights(place, wrapped)
        wrapped.unmount()
    good(mosa, "--json", "trace", "show", place.trace)


def test_growing(place):
    """A program that has a file open reads what others append to it, and write over, and appends behind that."""
    there = place.directory / "log"
    there.write_bytes(b"a" * 100)
    with open(place.mount / "log", "rb", buffering=0) as log, open(place.mount / "log", "ab", buffering=0) as writer:
        check(log.read(100) == b"a" * 100, "the beginning")
        with open(there, "ab") as outside:
            outside.write(b"b" * 100)
        check(log.read(200) == b"b" * 100, "what was appended outside")
        with open(there, "ab") as outside:
            outside.write(b"c" * 100)
        writer.write(b"d" * 10)
        with open(there, "r+b") as outside:
            outside.write(b"e" * 50)
        os.utime(there, (1, 1))  # For file systems whose clock is coarse.
        check(os.pread(log.fileno(), 1000, 0) == b"e" * 50 + b"a" * 50 + b"b" * 100 + b"c" * 100 + b"d" * 10, "all of it")


def test_rights(place, wrapped):
    """By root's wrapper nobody may more than on the directory itself."""
    own = place.mount / "renamed"
    os.setxattr(own, "user.seen", b"1")
    os.setxattr(place.directory / "renamed", "trusted.hidden", b"1")
    check("trusted.hidden" in os.listxattr(own), "root may know of it")
    names = wrapped.task("names", f"{PYTHON} -c 'import os; print(os.listxattr(\"renamed\"))'", user=NOBODY,
                         group=NOBODY, extra_groups=[])
    check("user.seen" in names and "trusted.hidden" not in names, names)
    try:
        os.setxattr(own, "system.nfs4_acl", b"x")
        check(False, "only its file system can guard it")
    except OSError as error:
        check(error.errno == errno.EOPNOTSUPP, f"{error}")

    # A file that was made while another was being made is opened by who may, only.
    with subprocess.Popen([PYTHON, "-c", RACER], cwd=place.mount, user=NOBODY, group=NOBODY, extra_groups=[],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        while process.poll() is None:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(place.directory / "raced", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(place.directory / "raced")
        check(process.returncode == 0, process.stdout.read())

    # Bits that who writes may not keep are gone, as without the wrapper.
    (place.directory / "source").write_bytes(b"more bytes")
    modes = []
    for where in (place.directory, place.mount):
        for name in BITS:
            (place.directory / name).write_bytes(b"bytes")
            (place.directory / name).chmod(0o6777)
        subprocess.run([PYTHON, "-c", WRITERS], cwd=where, user=NOBODY, group=NOBODY, extra_groups=[], check=True)
        modes.append({name: oct((place.directory / name).stat().st_mode) for name in BITS})
    check(modes[0] == modes[1], f"{modes}")
    check(modes[1]["write"] == modes[1]["copy"] == "0o100777", f"{modes}")


BITS = ("write", "copy", "allocate", "truncate")
RACER = """
import os, sys
for _ in range(300):
    try:
        file = os.open("raced", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        continue
    if os.fstat(file).st_uid == 0:
        sys.exit("root's file is opened")
    os.close(file)
    try:
        os.unlink("raced")
    except OSError:
        pass
"""
WRITERS = """
import os
file = {name: os.open(name, os.O_RDWR) for name in ("write", "copy", "allocate", "truncate")}
source = os.open("source", os.O_RDONLY)
os.write(file["write"], b"x")
os.copy_file_range(source, file["copy"], 10)
os.posix_fallocate(file["allocate"], 0, 10000)
os.ftruncate(file["truncate"], 1)
"""


def test_command(mosa, directory):
    """A command runs in the mount, as it would without, and nothing stays behind."""
    place = Place(directory, "command")

    def ran(*words):
        place.trace.unlink(missing_ok=True)
        done = run(mosa, "trace", "wrap", place.directory, place.mount, "-o", place.trace, "--", *words)
        check(not os.path.ismount(place.mount), "nothing is mounted")
        return done

    plain = subprocess.run(["sh", "-c", "umask; ulimit -n"], capture_output=True, text=True, check=True).stdout
    done = ran("sh", "-c", "pwd; umask; ulimit -n; echo text > made; exit 7")
    check(done.returncode == 7 and done.stdout == f"{place.mount}\n{plain}" and not done.stderr, f"{done}")
    check((place.directory / "made").read_text() == "text\n", "it was done in the directory")
    rows = json.loads(good(mosa, "--json", "trace", "show", place.trace).stdout)["rows"]
    check([row["path"] for row in rows] == ["made"], f"{rows}")
    done = ran("sh", "-c", "kill -TERM $PPID; while true; do sleep 0.1; done")
    check(done.returncode == 128 + signal.SIGTERM, f"SIGTERM is passed on: {done}")
    done = ran("no-such-program")
    check(done.returncode == 127 and "cannot run 'no-such-program'" in done.stderr, f"{done}")


def test_killed(mosa, directory):
    """The trace of a wrapper that is killed is good up to its last block; its place can be used again."""
    place = Place(directory, "killed")
    with place.wrap(mosa) as wrapped:
        wrapped.task("before", "echo x > x")
        size = place.trace.stat().st_size
        for _ in range(600):
            if place.trace.stat().st_size > size:
                break
            wrapped.task("before", "cat x; sleep 0.1")
        wrapped.process.kill()
        wrapped.process.communicate()
    done = run(mosa, "trace", "show", place.trace)
    check(done.returncode == 6 and "was killed" in done.stderr and "before" in done.stdout, done.stderr)
    place.trace.unlink()
    with place.wrap(mosa) as wrapped:
        wrapped.unmount()


def test_refusals(mosa, directory):
    place = Place(directory, "refused")
    (place.directory / "inside").mkdir()
    (place.directory / "file").touch()
    full = directory / "full"
    full.mkdir()
    (full / "file").touch()

    def refused(code, says, real=place.directory, mount=place.mount, trace=place.trace):
        done = run(mosa, "trace", "wrap", real, mount, "-o", trace)
        check(done.returncode == code, f"{says}: ended with {done.returncode}: {done.stderr}")
        check(done.stderr.count("\n") == 1 and says in done.stderr, f"expected '{says}': {done.stderr}")
        check(not os.path.ismount(place.mount), "nothing is mounted")

    refused(3, "No such file", real=directory / "missing")
    refused(3, "is not a directory", real=place.directory / "file")
    refused(3, "No such file", mount=directory / "missing")
    refused(3, "is not a directory", mount=place.directory / "file")
    refused(3, "is not empty; choose an empty directory", mount=full)
    refused(2, "which would then contain itself", mount=place.directory / "inside")
    refused(2, "which would then contain itself", mount=place.directory)
    refused(3, "No such file", trace=directory / "missing" / "trace")
    refused(2, "would lie on the mount", trace=place.mount / "trace")
    refused(2, "name a file, not a directory", trace=f"{directory}/")
    refused(3, "already exists: remove it", trace=full / "file")
    refused(3, "cannot create /proc/none", trace="/proc/none")
    check(not place.trace.exists(), "no trace is begun")
    done = run(mosa, "trace", "wrap", place.directory, place.mount)
    check(done.returncode == 2 and "--output" in done.stderr, done.stderr)


def why_not():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be used"
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        return "there is neither root nor fusermount3"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mosa", required=True)
    parser.add_argument("--battery", required=True)
    arguments = parser.parse_args()
    if why_not():
        print(f"skipped: {why_not()}")
        return SKIPPED
    # Ends by an exception, which takes the mounts away.
    signal.signal(signal.SIGALRM, lambda *_: check(False, f"not done after {LIMIT_S} s"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.alarm(LIMIT_S)
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        directory = pathlib.Path(directory)
        output, operations = test_workflow(arguments.mosa, directory)
        test_prediction(arguments.mosa, output, operations)
        test_files(arguments.mosa, pathlib.Path(memory), arguments.battery)
        test_command(arguments.mosa, directory)
        test_killed(arguments.mosa, directory)
        test_refusals(arguments.mosa, directory)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
