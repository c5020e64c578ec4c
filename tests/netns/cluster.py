"""Real clusters for tests: up and down by `mosa cluster`, daemons killed and started again.

A test is a function of (arguments) run by main(), which skips it (exit code 77) where a cluster of
namespaces cannot be had, ends it after its time limit, and shows the daemons' last words when it
fails. A failed check raises Failed. What a sanitizer says of a daemon fails the test as well, though
the daemon may go on.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import traceback

SKIPPED = 77
RUN_DIRECTORY = pathlib.Path("/run/mosa-test")
SANITIZER_SPEAKS = re.compile(r"(Address|Leak|Thread)Sanitizer: |: runtime error: ")


class Failed(Exception):
    """The system did not do what the test demands."""


class Skipped(Exception):
    """This machine cannot run the test."""


def check(condition, text):
    if not condition:
        raise Failed(text)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def why_not():
    """Why clusters with namespaces cannot be made here, or None."""
    if os.geteuid() != 0:
        return "needs root (network namespaces, FUSE passthrough)"
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    if subprocess.run(["ip", "netns", "list"], capture_output=True).returncode != 0:
        return "ip netns does not work here"
    return None


def start_ticks(pid):
    """When the process started, in ticks since boot; 0 if it is gone or a zombie."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def has_ended(pid):
    """No thread is left. While one ends, the process holds its files and their locks."""
    try:
        return start_ticks(pid) == 0 and len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return True


def stop(pid):
    """Stops a process. Its threads go on until one of them has taken the signal, which may wait for a processor."""
    os.kill(pid, signal.SIGSTOP)
    limit = time.monotonic() + 2  # A thread that waits for a disk or a mount stops when that has answered.
    while time.monotonic() < limit:
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        if all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks):
            return
        time.sleep(0.001)


def wait_until(condition, seconds, what):
    """Waits for a true value of condition() and returns it."""
    limit = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < limit, f"{what}: not after {seconds} s")
        time.sleep(0.005)


class Cluster:
    """One cluster, from `with` to its end. Hosts are named "h1", "h2", ..."""

    count = 0

    def __init__(self, binaries, hosts, *, rate=None, ram="1G", flags=()):
        Cluster.count += 1
        self.name = f"t{os.getpid()}-{Cluster.count}"
        self.directory = RUN_DIRECTORY
        self.binaries = pathlib.Path(binaries)
        self.flags = ["--hosts", str(hosts), "--ram", ram, *flags]
        if rate:
            self.flags += ["--rate", rate]
        self.children = []

    def _mosa(self, *words, limit_s=120):
        command = [str(self.binaries / "mosa"), *words, "--name", self.name]
        command += ["--dir", str(self.directory)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
        check(done.returncode == 0, f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def __enter__(self):
        self._mosa("cluster", "up", *self.flags)
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.show_logs()
        report = self.sanitizer_report()
        try:
            if self.state_path.exists():  # The test may have ended it itself.
                self._mosa("cluster", "down", "--discard")
        finally:
            for child in self.children:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=1)
        if report:
            print(report, file=sys.stderr)
        check(kind is not None or not report, f"a daemon is faulty: {report.partition(chr(10))[0]}")

    # ---- what it consists of

    @property
    def state_path(self):
        return self.directory / self.name / "state.json"

    @property
    def state(self):
        return json.loads(self.state_path.read_text())

    @property
    def hosts(self):
        return [host["name"] for host in self.state["plan"]["hosts"]]

    def host(self, name):
        plan = self.state["plan"]
        return next(h for h in [plan["manager"], *plan["hosts"]] if h["name"] == name)

    def mount(self, name):
        return self.host(name)["mount_point"]

    def pid(self, kind, name):
        """kind: "manager" (of "h0"), "storage" or "mount"."""
        return next(
            d["process"]["pid"]
            for d in self.state["daemons"]
            if d["kind"] == kind and d["host"] == name
        )

    def pids(self, *kinds):
        return [d["process"]["pid"] for d in self.state["daemons"] if d["kind"] in kinds]

    def cpu_seconds(self):
        """Processor seconds that all its daemons that run have used so far."""
        ticks = 0
        for pid in filter(start_ticks, self.pids("manager", "storage", "mount")):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def command(self, kind, name):
        """The command line of a daemon that runs."""
        words = pathlib.Path(f"/proc/{self.pid(kind, name)}/cmdline").read_bytes().split(b"\0")
        return [os.fsdecode(word) for word in words[:-1]]

    def exec(self, host, *command, **options):
        """Runs a command in a host's network namespace."""
        entered = ["ip", "netns", "exec", self.host(host)["net_namespace"], *command]
        return subprocess.run(entered, capture_output=True, text=True, **options)

    def tell(self, *words):
        """Runs a subcommand of `mosa` on this cluster; returns what it prints."""
        return self._mosa(*words)

    # ---- faults

    def kill(self, kind, name):
        """kill -9; returns the command line, for start()."""
        command = self.command(kind, name)
        pid = self.pid(kind, name)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: has_ended(pid), 10, f"the end of {kind} of {name}")
        return command

    def start(self, kind, name, command, *, environment=None, wait_s=20):
        """Starts a killed daemon again and waits until it serves."""
        host = self.host(name)
        if kind == "mount":
            subprocess.run(["umount", "-l", host["mount_point"]], capture_output=True)
        ready = pathlib.Path(command[command.index("--ready-file") + 1])
        ready.unlink(missing_ok=True)
        entered = ["nsenter", f"--net=/run/netns/{host['net_namespace']}", *command]
        with open(ready.with_suffix(".again"), "ab") as output:
            child = subprocess.Popen(
                entered,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        self.children.append(child)
        self._record(kind, name, child.pid)
        wait_until(lambda: ready.exists() or child.poll() is not None, wait_s, f"{kind} of {name}")
        check(child.poll() is None, f"{kind} of {name} ended at once: {' '.join(command)}")

    def _record(self, kind, name, pid):
        """So that `mosa cluster down` knows the new process."""
        state = self.state
        for daemon in state["daemons"]:
            if daemon["kind"] == kind and daemon["host"] == name:
                daemon["process"] = {"pid": pid, "start_ticks": start_ticks(pid)}
        fresh = self.state_path.with_suffix(".test")
        fresh.write_text(json.dumps(state, indent=1))
        fresh.replace(self.state_path)

    def logs(self):
        """What every daemon wrote: (host/file, lines)."""
        for path in sorted((self.directory / self.name).glob("h*/run/*")):
            if path.suffix in (".log", ".out", ".again"):
                where = f"{path.parent.parent.name}/{path.name}"
                yield where, path.read_text(errors="replace").splitlines()

    def show_logs(self, lines=12):
        """The last lines that every daemon wrote, to standard error."""
        for where, text in self.logs():
            if text:
                print(f"--- {where}", *text[-lines:], sep="\n", file=sys.stderr)

    def sanitizer_report(self, lines=60):
        """The first lines of the first report in a daemon's log, or ""."""
        for where, text in self.logs():
            for number, line in enumerate(text):
                if SANITIZER_SPEAKS.search(line):
                    return "\n".join([f"{where}: {line}", *text[number + 1 : number + lines]])
        return ""


def is_sanitized(pid):
    """Its sanitizer takes several times the memory and the time of the program."""
    return re.search(r"lib[at]san", pathlib.Path(f"/proc/{pid}/maps").read_text()) is not None


def set_hint(path, name, value):
    os.setxattr(path, f"user.mosa.{name}", value.encode())


def placed_directory(path, placement):
    """A directory whose files go where `placement` says."""
    os.mkdir(path)
    set_hint(path, "placement", placement)
    return path


def check_location(path, *hosts):
    """The bytes of `path` must lie on these hosts, so that nothing local passes for remote."""
    have = sorted(os.getxattr(path, "user.mosa.location").decode().split(","))
    check(have == sorted(hosts), f"{path} lies on {have}, must lie on {sorted(hosts)}")


def print_table(titles, rows):
    cells = [titles, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(titles))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    sys.stdout.flush()


def main(test, *, limit_s=600, add_arguments=lambda parser: None, description=""):
    """Runs test(arguments) and exits."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", required=True, help="the directory of mosa and its daemons")
    parser.add_argument("--limit", type=int, default=limit_s, help="seconds the test may take")
    add_arguments(parser)
    arguments = parser.parse_args()
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)

    child = os.fork()
    if child == 0:
        _run_child(test, arguments)
    _wait_for(child, arguments)


def _run_child(test, arguments):
    def out_of_time(number, _):
        raise Failed(f"not done after {arguments.limit} s" if number == signal.SIGALRM else "ended")

    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, out_of_time)
    signal.alarm(arguments.limit)
    code = 1
    try:
        test(arguments)
        print("passed")
        code = 0
    except Failed as failure:
        print(f"FAILED: {failure}")
    except Skipped as reason:
        print(f"skipped: {reason}")
        code = SKIPPED
    except BaseException:  # noqa: BLE001 - whatever it is, the test has failed.
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)


def _wait_for(child, arguments):
    """Exits as the test did. One that hangs in a dead mount is ended with its clusters."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: os.kill(child, got))
    limit = time.monotonic() + arguments.limit + 60
    while time.monotonic() < limit:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            sys.exit(code if code in (0, SKIPPED) else 1)
        time.sleep(0.05)
    print("FAILED: hangs; ending its clusters")
    for path in RUN_DIRECTORY.glob(f"t{child}-*"):
        command = [f"{arguments.bin}/mosa", "cluster", "down", "--discard", "--name", path.name]
        subprocess.run([*command, "--dir", str(RUN_DIRECTORY)], timeout=60, check=False)
    os.kill(child, signal.SIGKILL)
    sys.exit(1)
