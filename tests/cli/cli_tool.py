"""The program mosa with a directory of its own, and what it may leave on the machine: for cli_test.py and hosts_test.py."""

import argparse
import contextlib
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import traceback

SKIPPED = 77
MOSA_HOSTS = pathlib.Path(__file__).resolve().parents[2] / "deploy/mosa-hosts"


class Failed(Exception):
    """The program did not do what it promises."""


def check(condition, text):
    if not condition:
        raise Failed(text)


class Tool:
    """The program mosa, with a directory of its own for clusters."""

    def __init__(self, binaries, directory):
        self.path = pathlib.Path(binaries).resolve() / "mosa"
        self.directory = directory

    def run(self, *words, **options):
        environment = {**os.environ, "MOSA_CLUSTER_DIR": self.directory}
        for name in ("MOSA_CLUSTER", "MOSA_MANAGER", "MOSA_SECRET"):
            environment.pop(name, None)
        environment.update(options.pop("environment", {}))
        return subprocess.run([str(self.path), *words], capture_output=True, text=True, timeout=120, env=environment,
                              check=False, **options)

    def good(self, *words, **options):
        done = self.run(*words, **options)
        check(done.returncode == 0, f"mosa {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def start(self, *words):
        return subprocess.Popen([str(self.path), *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "MOSA_CLUSTER_DIR": self.directory}, start_new_session=True)


def answer_on_terminal(tool, answer, *words):
    """Runs a command on a terminal where somebody answers its question, or ends it. Returns exit code and what it wrote."""
    own, terminal = pty.openpty()
    with subprocess.Popen([str(tool.path), *words], stdin=terminal, stdout=terminal, stderr=terminal,
                          env={**os.environ, "MOSA_CLUSTER_DIR": tool.directory}) as process:
        os.close(terminal)
        said = b""
        with contextlib.suppress(OSError):  # The terminal's end.
            while part := os.read(own, 4096):
                said += part
                if not said.endswith(b"[y/N] "):
                    continue
                if answer:
                    os.write(own, answer)
                else:
                    process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)
    os.close(own)
    return code, said.decode()


def processes(directory):
    """Command lines of living processes that name `directory`, but for this test's."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if directory.encode() in words and b"cli_test.py" not in words:
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def traces(tool):
    """Everything that a cluster of this test could leave on the machine."""
    here = []
    if os.geteuid() == 0:
        netns = pathlib.Path("/run/netns")
        here += [f"namespace {p.name}" for p in netns.glob("mosa-cli*")]
        here += [f"link {p.name}" for p in pathlib.Path("/sys/class/net").iterdir() if is_own_link(p.name)]
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    here += [f"mount {line.split()[4]}" for line in mounts if line.split()[4].startswith(tool.directory + "/")]
    here += [f"process {words}" for words in processes(tool.directory)]
    here += [f"file {p}" for p in pathlib.Path(tool.directory).rglob("*")]
    return here


LINKS_BEFORE = {p.name for p in pathlib.Path("/sys/class/net").iterdir()}


def is_own_link(name):
    """A bridge or veth of a number that was not in use before, and that no other cluster's bridge claims now."""
    if not name.startswith("mosa") or name in LINKS_BEFORE:
        return False
    return name.split("h")[0] in OWN_BRIDGES


OWN_BRIDGES: set[str] = set()


def remember_bridges(tool):
    for path in pathlib.Path(tool.directory).glob("*/state.json"):
        try:
            OWN_BRIDGES.add(json.loads(path.read_text(encoding="utf-8"))["plan"]["bridge"])
        except (OSError, ValueError):
            pass


def check_clean(tool, after):
    left = traces(tool)
    check(not left, f"left after {after}: {len(left)} things, first {left[:10]}")


def name(suffix):
    return f"cli{os.getpid()}-{suffix}"


def up(tool, suffix, *flags, hosts=2):
    text = tool.good("cluster", "up", "--json", "--name", name(suffix), "--hosts", str(hosts), "--ram", "64M", *flags)
    remember_bridges(tool)
    return json.loads(text)


def down(tool, suffix):
    tool.good("cluster", "down", "--name", name(suffix))


def why_no_cluster():
    """Why clusters cannot run here; None if they can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse for this user"
    if os.geteuid() == 0 and subprocess.run(["ip", "netns", "list"], capture_output=True, check=False).returncode != 0:
        return "ip netns does not work here"
    return None


def show_logs(directory):
    """The last lines of every daemon of every cluster that is still there."""
    for log in sorted(pathlib.Path(directory).glob("*/h*/run/*.log")):
        print(f"--- {log}", *log.read_text(errors="replace").splitlines()[-5:], sep="\n", file=sys.stderr)


def run_case(cases, why_not):
    """The command line of a test: runs the case that it names, and cleans up behind it. Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--binaries", required=True)
    parser.add_argument("case", choices=[case.__name__ for case in cases])
    arguments = parser.parse_args()
    case = next(c for c in cases if c.__name__ == arguments.case)
    reason = why_not(case)
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="mosa-cli-", dir="/dev/shm") as directory:
        tool = Tool(arguments.binaries, directory)
        try:
            case(tool)
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            show_logs(directory)
            return 1
        finally:
            for path in pathlib.Path(directory).glob("*/state.json"):
                tool.run("cluster", "down", "--discard", "--name", path.parent.name)
    return 0
