"""deploy/mosa-hosts starts, repairs, changes and ends a cluster on a list of hosts, here network namespaces.

    hosts_test.py --binaries DIR CASE        CASE is a name below: hosts, hosts_by_ssh

Exit code 77: skipped, with the reason.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from cli_tool import MOSA_HOSTS, check, check_clean, down, processes, run_case, up, why_no_cluster


def hosts(tool):
    """deploy/mosa-hosts over the namespaces of a cluster, each as if it were a machine."""
    facts = up(tool, "m", hosts=3)
    if not facts["namespaces"]:
        down(tool, "m")
        return
    with tempfile.TemporaryDirectory(prefix="mosa-hosts-") as lab:
        hostfile = pathlib.Path(lab) / "hosts"
        lines = [f"{host['namespace']} {host['address']}" for host in facts["hosts"]]
        # The third host comes later.
        hostfile.write_text("# name, address\n" + "\n".join(lines[:2]) + "\n", encoding="ascii")
        flags = [str(hostfile), "--bin", str(tool.path.parent.resolve()), "--port", "7500", "--limit", "64M", "--dir",
                 lab + "/{host}", "--mount", lab + "/{host}/mount", "--exec", "nsenter --net=/run/netns/{host} sh -c"]

        scratch = pathlib.Path(lab) / "scratch"
        scratch.mkdir()

        def act(verb, *more, code=0, host=()):
            done = subprocess.run([str(MOSA_HOSTS), verb, flags[0], *host, *flags[1:], *more], capture_output=True, text=True, timeout=90, check=False,
                                  env={**os.environ, "TMPDIR": str(scratch)})
            check(done.returncode == code, f"mosa-hosts {verb} ended with {done.returncode}: {done.stderr}")
            check(not any(scratch.iterdir()), f"mosa-hosts {verb} left secrets in {list(scratch.iterdir())}")
            check("unbound" not in done.stderr, f"mosa-hosts {verb}: {done.stderr}")
            return done.stdout

        try:
            fuse = ("--flags", "mount=--allow-other")
            mounts = [pathlib.Path(line.split("\t")[1]) for line in act("up", *fuse).splitlines()]
            check(len(mounts) == 2, f"mounts: {mounts}")
            options = [line for line in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines() if str(mounts[0]) in line]
            check("allow_other" in options[0], f"--flags has no effect: {options}")
            hostfile.write_text("\n".join(lines) + "\n", encoding="ascii")
            mounts += [pathlib.Path(line.split("\t")[1]) for line in act("add", *fuse).splitlines()]
            check(len(mounts) == 3, f"after add: {mounts}")
            act("add")
            (mounts[0] / "file").write_bytes(b"z" * 5_000_000)
            check((mounts[2] / "file").read_bytes() == b"z" * 5_000_000, "other bytes than were written")
            check(len(act("status").splitlines()) > 6, "the status is short of nodes and mounts")
            act("up", code=3)
            check((mounts[1] / "file").exists(), "a second up harmed the first")
            # What has ended by itself is started again, and what a node in RAM held is there.
            ended = [pathlib.Path(lab) / facts["hosts"][number]["namespace"] / f"{kind}.pid"
                     for number, kind in ((0, "manager"), (1, "storage"), (2, "mount"))]
            for file in ended:
                os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
            time.sleep(0.5)
            said = act("restart", *fuse)
            check(len(said.splitlines()) == 3, f"restart said: {said}")
            check(act("restart", *fuse) == "", "a second restart started something")
            limit = time.monotonic() + 30
            while time.monotonic() < limit:
                try:
                    if (mounts[2] / "file").read_bytes() == b"z" * 5_000_000:
                        break
                except OSError:
                    time.sleep(0.2)
            check((mounts[2] / "file").read_bytes() == b"z" * 5_000_000, "other bytes after a restart")
            act("remove", host=(facts["hosts"][0]["namespace"],), code=2)
            act("remove", host=(facts["hosts"][2]["namespace"],))
            check((mounts[1] / "file").read_bytes() == b"z" * 5_000_000, "a host that was removed took bytes along")
            check(not mounts[2].exists() or not mounts[2].is_mount(), "the mount of the removed host is there")
            act("add", *fuse)
            os.setxattr(mounts[0] / "file", "user.mosa.lifetime", b"keep")
            act("down", code=3)
            check((mounts[1] / "file").exists(), "down took what is to be kept")
            act("down", "--stage-out", lab + "/archive")
            archive = pathlib.Path(lab) / "archive"
            check((archive / "file").read_bytes() == b"z" * 5_000_000, "other bytes than were kept")
            check(not (mounts[1] / "file").exists(), "down has ended nothing")
            shutil.rmtree(archive)
            # A manager that has ended cannot say what is to be kept.
            act("up")
            pid = int((pathlib.Path(lab) / facts["hosts"][0]["namespace"] / "manager.pid").read_text().split()[0])
            os.kill(pid, signal.SIGKILL)
            limit = time.monotonic() + 10
            while time.monotonic() < limit and pathlib.Path(f"/proc/{pid}").exists():
                time.sleep(0.01)
            act("down", code=3)
            check(str(mounts[1]) in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8"), "down ended it")
        finally:
            act("down", "--discard")
        left = [str(p) for p in pathlib.Path(lab).iterdir() if p not in (hostfile, scratch)]
        left += processes(lab)
        check(not left and lab not in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8"), f"left: {left}")
    down(tool, "m")
    check_clean(tool, "down")


class SshServers:
    """An sshd for root in each network namespace, from `with` to its end."""

    def __init__(self, directory, hosts):
        self.directory, self.hosts = pathlib.Path(directory), hosts

    def __enter__(self):
        pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        for key in ("server", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / key], check=True)
        (self.directory / "sshd_config").write_text(
            f"HostKey {self.directory}/server\nAuthorizedKeysFile {self.directory}/client.pub\nPermitRootLogin yes\n"
            f"StrictModes no\nUsePAM no\nPasswordAuthentication no\nMaxStartups 100\n", encoding="ascii")
        (self.directory / "ssh_config").write_text(
            f"Host *\n  IdentityFile {self.directory}/client\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
            "  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  BatchMode yes\n", encoding="ascii")
        self.servers = []
        for host in self.hosts:
            command = ["nsenter", f"--net=/run/netns/{host['namespace']}", "/usr/sbin/sshd", "-D", "-e", "-f", self.directory / "sshd_config",
                       "-o", f"ListenAddress={host['address']}", "-o", f"PidFile={self.directory}/{host['namespace']}.pid"]
            with open(self.directory / f"{host['namespace']}.log", "wb") as log:
                self.servers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.terminate()
            server.wait(10)

    def command(self):
        """As `--exec`: addresses are names here, since no DNS knows the namespaces."""
        return f"nsenter --net=/run/netns/{self.hosts[0]['namespace']} ssh -F {self.directory}/ssh_config {{host}}"


def hosts_by_ssh(tool):
    """deploy/mosa-hosts and `mosa run` over real sshd, each in a namespace of its own."""
    facts = up(tool, "s", hosts=3)
    with tempfile.TemporaryDirectory(prefix="mosa-ssh-", dir="/tmp") as lab, SshServers(lab, facts["hosts"]) as servers:
        hostfile = pathlib.Path(lab) / "hosts"
        hostfile.write_text("".join(host["address"] + "\n" for host in facts["hosts"]), encoding="ascii")
        flags = ["--bin", str(tool.path.parent.resolve()), "--port", "7500", "--limit", "32M", "--dir", lab + "/{host}", "--mount", lab + "/{host}/mount",
                 "--exec", servers.command()]

        def act(verb, *more):
            done = subprocess.run([str(MOSA_HOSTS), verb, "-n", str(hostfile), *flags, *more], capture_output=True, text=True,
                                  timeout=120, check=False)
            check(done.returncode == 0, f"mosa-hosts {verb} over ssh ended with {done.returncode}: {done.stderr}")
            return done.stdout

        try:
            mounts = [pathlib.Path(line.split("\t")[1]) for line in act("up").splitlines()]
            check(len(mounts) == 3, f"mounts: {mounts}")
            (mounts[0] / "file").write_bytes(b"z" * 3_000_000)
            check((mounts[2] / "file").read_bytes() == b"z" * 3_000_000, "other bytes than were written")
            flow = pathlib.Path(lab) / "flow.yaml"
            flow.write_text("tasks:\n  - {id: a, command: hostname > a, outputs: [a]}\n  - {id: b, command: cat a > b, inputs: [a], outputs: [b]}\n",
                            encoding="ascii")
            done = subprocess.run([str(tool.path), "run", str(flow), "--mount", lab + "/{host}/mount", "--hosts",
                                   ",".join(host["address"] for host in facts["hosts"]), "--exec", servers.command(),
                                   "--record", lab + "/run.json"], capture_output=True, text=True, timeout=120, check=False)
            check(done.returncode == 0 and (mounts[1] / "b").read_text(), f"mosa run over ssh: {done.stderr}")
        finally:
            act("down", "--discard")
        check(lab not in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8"), "a mount is left")
    down(tool, "s")
    check_clean(tool, "down")


def why_not(case):
    if case is hosts_by_ssh and not (os.geteuid() == 0 and os.access("/usr/sbin/sshd", os.X_OK) and shutil.which("ssh")):
        return "it needs root and the package openssh-server"
    return why_no_cluster()


if __name__ == "__main__":
    sys.exit(run_case([hosts, hosts_by_ssh], why_not))
