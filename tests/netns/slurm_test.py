"""Each Slurm job has its own store over its hosts, made and ended by deploy/slurm with a real Slurm.

slurmctld and a slurmd per host run here, each host with network, UTS and mount namespaces and a munged of its own. Jobs are
real: two at once on other hosts, one after the other on the same ones, results staged out or refused, a host that ends late, a
cancelled job, a prolog that cannot start, hosts that are cut off or lost. Nothing of a job is left on its hosts, and nothing of the test on the machine.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time

import cluster
from cluster import check, wait_until

HOSTS = ["h1", "h2", "h3", "h4"]
USER = pwd.getpwnam("nobody")
PROGRAMS = ["slurmctld", "slurmd", "scontrol", "sbatch", "munged", "setfattr"]
DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy/slurm"

SLURM_CONF = """
ClusterName=lab
SlurmctldHost=c0(10.0.0.100)
SlurmUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
StateSaveLocation={lab}/state
SlurmdSpoolDir={lab}/spool.%n
SlurmctldLogFile={lab}/slurmctld.log
SlurmdLogFile={lab}/slurmd.%n.log
SlurmctldPidFile={lab}/slurmctld.pid
SlurmdPidFile={lab}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=8
Prolog={lab}/slurm/prolog
Epilog={lab}/slurm/epilog
TaskProlog={lab}/slurm/task-prolog
PrologFlags=Alloc,DeferBatch
BatchStartTimeout=120
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def kill(pid):
    with contextlib.suppress(ProcessLookupError):  # It ends by itself, or with another one.
        os.kill(pid, signal.SIGKILL)


class Lab:
    """A controller `c0` and hosts; a host is a process that sleeps in namespaces of its own."""

    def __init__(self, binaries):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="mosa-slurm-", dir="/var/tmp"))
        self.path.chmod(0o755)
        self.binaries = pathlib.Path(binaries).resolve()
        self.holders, self.daemons, self.spaces = {}, {}, {}

    def __enter__(self):
        try:
            self._write_files()
            self._make_hosts()
            for host in self.holders:
                self.daemons["munged", host] = self.start(
                    host, "munged", "--foreground", "--force", f"--key-file={self.path}/munge.key",
                    f"--log-file={self.path}/munged.{host}.log", "--seed-file=/run/munge/seed",
                )  # fmt: skip
            self.daemons["slurmctld", "c0"] = self.start("c0", "slurmctld", "-D")
            for host in HOSTS:
                self.start_slurmd(host)
            wait_until(lambda: self.states() == ["idle"] * 4, 20, "the hosts are idle")
        except BaseException:
            self.__exit__(True)
            raise
        return self

    def __exit__(self, kind, *_):
        if kind:
            for name in ("mosa.log", "slurmctld.log", *(f"slurmd.{h}.log" for h in HOSTS)):
                if (self.path / name).exists():
                    lines = (self.path / name).read_text(errors="replace").splitlines()[-30:]
                    print(f"--- {name}", *lines, sep="\n")
        limit = time.monotonic() + 20
        while left := self.processes():
            for pid in left:
                kill(pid)
            for child in [*self.daemons.values(), *self.holders.values()]:
                child.poll()
            check(time.monotonic() < limit, f"do not end: {left}")
            time.sleep(0.05)
        for holder in self.holders.values():
            holder.kill()
            holder.wait()
        shutil.rmtree(self.path)

    def _write_files(self):
        for name in ("state", "jobs", "out", "shared", *(f"spool.{host}" for host in HOSTS)):
            (self.path / name).mkdir()
        for name in ("jobs", "out"):
            os.chown(self.path / name, USER.pw_uid, USER.pw_gid)
        (self.path / "munge.key").write_bytes(os.urandom(128))
        (self.path / "munge.key").chmod(0o400)
        addresses = {"c0": 100, **{host: number for number, host in enumerate(HOSTS, 1)}}
        self.addresses = {host: f"10.0.0.{number}" for host, number in addresses.items()}
        lines = ["127.0.0.1 localhost", *(f"{a} {host}" for host, a in self.addresses.items())]
        (self.path / "hosts").write_text("\n".join(lines) + "\n")
        nodes = "\n".join(f"NodeName={h} NodeAddr={self.addresses[h]} CPUs=2" for h in HOSTS)
        (self.path / "slurm.conf").write_text(SLURM_CONF.format(lab=self.path, nodes=nodes))
        shutil.copytree(DEPLOY, self.path / "slurm")
        self.configure()

    def configure(self, **more):
        settings = {
            "shared": f"{self.path}/shared", "bin": self.binaries, "limit": "64M", "hold_seconds": 2,
            "end_seconds": 20,
            "mounts": "/run/mosa", "wait_seconds": 15, "log": f"{self.path}/mosa.log", **more,
        }  # fmt: skip
        text = (DEPLOY / "mosa.conf").read_text()
        lines = [f"{name}={value}" for name, value in settings.items()]
        (self.path / "slurm/mosa.conf").write_text(text + "\n".join(lines) + "\n")

    def _make_hosts(self):
        script = f"""
            set -e
            mount -t tmpfs -o mode=755 host /run
            mkdir -p -m 755 /run/munge
            mount --bind {self.path}/hosts /etc/hosts
            hostname "$1"
            ip link set lo up
            [ "$1" != c0 ] || {{
              ip link add br0 type bridge
              ip link set br0 up
              ip address add {self.addresses["c0"]}/24 dev br0
            }}
            touch {self.path}/made.$1
            exec sleep 600
        """
        for host in self.addresses:
            self.holders[host] = subprocess.Popen(
                ["unshare", "--net", "--uts", "--mount", "--propagation", "slave", "sh", "-c", script, "sh", host],
                start_new_session=True,
            )
        for host in self.addresses:
            wait_until(lambda h=host: (self.path / f"made.{h}").exists(), 10, f"host {host}")
            self.spaces[host] = os.stat(f"/proc/{self.holders[host].pid}/ns/net").st_ino
            check(self.spaces[host] != os.stat("/proc/self/ns/net").st_ino, f"{host} is this machine")
        for host in HOSTS:
            self.run("c0", "ip", "link", "add", host, "type", "veth", "peer", "name", "eth0",
                     "netns", str(self.holders[host].pid))  # fmt: skip
            self.run("c0", "ip", "link", "set", host, "master", "br0", "up")
            self.run(host, "ip", "address", "add", f"{self.addresses[host]}/24", "dev", "eth0")
            self.run(host, "ip", "link", "set", "eth0", "up")

    def _enter(self, host):
        return ["nsenter", f"--target={self.holders[host].pid}", "--net", "--uts", "--mount"]

    def start(self, host, *command):
        return subprocess.Popen(
            [*self._enter(host), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(self.path / f"{command[0]}.{host}.out", "ab"),
            env={**os.environ, "SLURM_CONF": f"{self.path}/slurm.conf"},
            start_new_session=True,
        )

    def start_slurmd(self, host):
        self.daemons["slurmd", host] = self.start(host, "slurmd", "-D", "-N", host)

    def run(self, host, *command, code=0, limit_s=30):
        done = subprocess.run(
            [*self._enter(host), *map(str, command)],
            capture_output=True,
            text=True,
            timeout=limit_s,
            env={**os.environ, "SLURM_CONF": f"{self.path}/slurm.conf"},
        )
        text = " ".join(map(str, command))
        check(done.returncode == code, f"{text} on {host}: {done.returncode}: {done.stderr}")
        return done.stdout

    def processes(self, *hosts, name=""):
        """Whatever runs in the network namespaces of these hosts, or of all."""
        spaces = {self.spaces[host] for host in hosts or self.spaces}
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                comm = (entry / "comm").read_text().strip()
                if os.stat(entry / "ns/net").st_ino in spaces and comm.startswith(name):
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def lose(self, host):
        """As by a power cut."""
        for pid in self.processes(host):
            if pid != self.holders[host].pid:
                kill(pid)
        self.run("c0", "scontrol", "update", f"nodename={host}", "state=down", "reason=lost")

    # ---- Slurm

    def states(self):
        return sorted(self.run("c0", "sinfo", "-h", "-N", "-o", "%T").split())

    def reason(self, host):
        return self.run("c0", "sinfo", "-h", "-N", "-n", host, "-o", "%T %E").strip()

    def submit(self, name, hosts, script, **environment):
        """Returns the number of the job."""
        path = self.path / f"jobs/{name}.sh"
        path.write_text("#!/bin/bash\nset -eu\n" + textwrap.dedent(script))
        names = ",".join(["ALL", *(f"{key}={value}" for key, value in environment.items())])
        return self.run(
            "c0", "setpriv", "--reuid", USER.pw_uid, "--regid", USER.pw_gid, "--clear-groups", "sbatch", "--parsable",
            f"--nodes={len(hosts)}", "--nodelist",
            ",".join(hosts), f"--chdir={self.path}/jobs", f"--output={name}.%j", f"--export={names}", path,
        ).strip()  # fmt: skip

    def state(self, job):
        words = self.run("c0", "scontrol", "show", "job", job).split()
        return next(word.partition("=")[2] for word in words if word.startswith("JobState="))

    def await_state(self, job, *states, seconds=30):
        wait_until(lambda: self.state(job) in states, seconds, f"job {job} is {states}")

    def done(self, name, job, hosts):
        """Waits for the job's end and that of its epilogs; returns what it has printed."""
        self.await_state(job, "COMPLETED", "FAILED")
        text = (self.path / f"jobs/{name}.{job}").read_text()
        check(self.state(job) == "COMPLETED", f"job {name}: {self.state(job)}: {text}")
        self.await_clean(job, hosts)
        return text

    def await_clean(self, job, hosts, *, head_lost=False):
        """Nothing of the job is left on its hosts, and they serve the next one."""
        for host in hosts:
            wait_until(lambda h=host: self.reason(h).startswith("idle"), 30, f"{host} is idle again")
            check(not self.processes(host, name="mosa"), f"daemons are left on {host}")
            left = self.run(host, "sh", "-c", "grep -E ' /run/mosa(-slurm)?/' /proc/mounts; ls -A /run/mosa-slurm /run/mosa; true")
            left = [w for w in left.split() if w not in ("/run/mosa-slurm:", "/run/mosa:")]
            check(not left, f"job {job} has left {left} on {host}")
        for letter in [] if head_lost else (self.path / "shared").glob(f"mosa-lab-{job}-*"):
            word = subprocess.run(
                [*self._enter("c0"), "unmunge", "--metadata=/dev/null"], stdin=open(letter),
                capture_output=True, text=True,
            ).stdout  # fmt: skip
            check(word.split()[:2] == [letter.name, "over"], f"{letter} still holds a secret")

    def log(self):
        path = self.path / "mosa.log"
        return path.read_text() if path.exists() else ""

    def await_log(self, job, text):
        def found():
            return [line for line in self.log().splitlines() if f" job {job} " in line and text in line]

        return wait_until(found, 30, f"the log of job {job} says '{text}'")[0]


# Each host writes a part of its own, then reads all parts; the result is what the program `sort` makes of them.
WORK = """
    cd $MOSA_MOUNT
    test -z "$(ls -A | grep -v '^.stage-out$')"
    mkdir results
    setfattr -n user.mosa.lifetime -v keep results
    srun sh -c 'seq $((SLURM_PROCID + 1)) $SLURM_NNODES 300000 > part.$SLURM_PROCID'
    srun sh -c 'cat part.* | cksum; hostname > results/host.$SLURM_PROCID'
    srun sh -c 'getfattr --only-values -n user.mosa.location part.0; echo'
    sort -n part.* > results/all
    $MOSA where results/all
"""

# The job's user stages out himself, by all hosts.
STAGE = """
    hosts=$(scontrol show hostnames | paste -sd,)
    $MOSA stage out --unstaged $OUT --mount $MOSA_MOUNT --hosts $hosts \\
      --exec 'srun -u --overlap -N1 -n1 -w {host} sh -c'
"""


# Each host holds a result of its own.
KEEP = """
    mkdir $MOSA_MOUNT/results
    setfattr -n user.mosa.lifetime -v keep $MOSA_MOUNT/results
    setfattr -n user.mosa.placement -v local $MOSA_MOUNT/results
    srun sh -c 'echo of $(hostname) >$MOSA_MOUNT/results/$SLURM_PROCID'
"""


LARGE = """
    yes large | head -n 500000 >$MOSA_MOUNT/results/large
"""
PAUSE = """
    touch up.{}
    sleep 600
"""


def check_results(top, hosts):
    wanted = "".join(f"{number}\n" for number in range(1, 300001)).encode()
    have = (top / "results/all").read_bytes()
    check(have == wanted, f"{top}/results/all has {len(have)} bytes, other than {len(wanted)}")
    names = {path.read_text().strip() for path in (top / "results").glob("host.*")}
    check(names == set(hosts), f"{names} have written, must be {hosts}")
    check((top / "results/all").stat().st_uid == USER.pw_uid, "results belong to somebody else")


def check_two_at_once(lab):
    """Two jobs at once, each with results to keep; a third on the hosts of the first sees nothing of it."""
    pairs = {"a": HOSTS[:2], "b": HOSTS[2:]}
    scripts = {"a": WORK, "b": WORK + STAGE}
    jobs = {}
    for name, hosts in pairs.items():
        named = {"OUT" if name == "b" else "MOSA_STAGE_OUT": lab.path / "out" / name}
        jobs[name] = lab.submit(name, hosts, scripts[name], MOSA=lab.binaries / "mosa", **named)
    for name, hosts in pairs.items():
        text = lab.done(name, jobs[name], hosts)
        sums = [line for line in text.splitlines() if line.endswith(" 1988895")]
        check(len(sums) == 2 and len(set(sums)) == 1, f"hosts read other bytes: {text}")
        nodes = next(line.split()[0] for line in text.splitlines() if line.endswith("\tresults/all"))
        check(sorted(nodes.split(",")) == hosts, f"results/all lies on {nodes}, must lie on {hosts}")
        check_results(lab.path / "out" / name, hosts)
    lab.await_log(jobs["a"], "staged out to")
    check(f" job {jobs['b']} " not in lab.log(), "the epilog staged what the job had staged itself")
    job = lab.submit("c", HOSTS[:2], """
        ls $MOSA_MOUNT | wc -l
        mount | grep -c "$MOSA_MOUNT .*nosuid,nodev"
        mkdir $MOSA_MOUNT/results
        setfattr -n user.mosa.lifetime -v keep $MOSA_MOUNT/results
        echo other >$MOSA_MOUNT/results/all
    """, MOSA_STAGE_OUT=lab.path / "out/a")  # fmt: skip
    check(lab.done("c", job, HOSTS[:2]) == "0\n1\n", "the next job sees something, or its mount is no safe one")
    check_results(lab.path / "out/a", HOSTS[:2])
    check((lab.path / f"out/a/{job}/results/all").read_text() == "other\n", "results of two jobs in one directory are mixed")
    return job


def check_private(lab, job):
    """Other users get nothing of a store, and its user neither root's secret nor the epilog's lock."""
    own = f"/run/mosa-slurm/{job}"
    for user, words in (
        (USER.pw_uid, ("flock", "--nonblock", f"{own}/lock", "true")),
        (USER.pw_uid, ("cat", f"{own}/secrets/mount.pem")),
        (1, ("ls", f"/run/mosa/{job}")),
        (1, ("cat", f"{own}/job.pem")),
    ):
        identity = ("setpriv", "--reuid", user, "--regid", USER.pw_gid, "--clear-groups")
        done = lab.run("h1", *identity, "sh", "-c", '"$@" >/dev/null 2>&1 || echo refused', "sh", *words)
        check(done == "refused\n", f"user {user} may {' '.join(words)}")
    check_secret_of_the_user(lab, own)
    lab.run("h1", "grep", f" {own}/data tmpfs .*size=1048576k", "/proc/mounts")


def check_secret_of_the_user(lab, own):
    """What the prolog gave the job's user registers no node and administers nothing."""
    lines = lab.run("h1", "cat", f"{own}/environment").splitlines()
    manager = next(line.partition("=")[2] for line in lines if line.startswith("export MOSA_MANAGER="))
    common = ("--manager", manager, "--secret", f"{own}/job.pem")
    node = ("--name", "evil", "--listen", f"{lab.addresses['h1']}:7999", "--dir", f"{lab.path}/jobs/evil",
            "--limit", "64M", "--socket", f"{lab.path}/jobs/evil.sock")  # fmt: skip
    identity = ("setpriv", "--reuid", USER.pw_uid, "--regid", USER.pw_gid, "--clear-groups")
    for words, says in (
        (("mosa-storage", *node, *common), "has the role user"),
        (("mosa-mount", f"{lab.path}/jobs", *common), "has the role user"),
        (("mosa", "node", "drain", "h1", *common), "takes the role admin"),
    ):
        command = (lab.binaries / words[0], *words[1:])
        done = lab.run("h1", *identity, "sh", "-c", '"$@" 2>&1 && echo done || true', "sh", *command)
        check(says in done, f"{words[0]} with the user's secret: {done}")


def check_slow_ending(lab):
    """The store lives until the last host's tasks have ended; %j is the job's number."""
    hosts = HOSTS[:2]
    job = lab.submit("m", hosts, """
        mkdir $MOSA_MOUNT/results
        setfattr -n user.mosa.lifetime -v keep $MOSA_MOUNT/results
        srun -N1 -n1 -w h2 sh -c '
          trap "sleep 3; echo late >$MOSA_MOUNT/results/late; exit" TERM
          touch up.m
          while :; do sleep 0.1; done' &
        until [ -e up.m ]; do sleep 0.1; done
    """, MOSA_STAGE_OUT=lab.path / "out/m.%j")  # fmt: skip
    lab.done("m", job, hosts)
    check((lab.path / f"out/m.{job}/results/late").read_text() == "late\n", "the end of a task on h2 is lost")


def check_refusal(lab, earlier):
    """What nobody has said where to put is not thrown away: the store is kept, then its head node drained with it."""
    hosts = HOSTS[:2]
    job = lab.submit("d", hosts, KEEP)
    told = lab.await_log(job, "keeps the store for up to 2 s")
    for part in ("2 files of lifetime=keep", "/results/0", "no directory in .stage-out"):
        check(part in told, f"'{told}' does not say '{part}'")
    wait_until(lambda: "drained" in lab.reason("h1"), 20, "h1 is drained")
    check("keeps the store, see" in lab.reason("h1"), f"sinfo -R says {lab.reason('h1')}")
    for host in hosts:
        text = lab.run("h1", "cat", f"/run/mosa/{job}/results/{hosts.index(host)}")
        check(text == f"of {host}\n", f"{host} holds {text!r} no longer")
    check_private(lab, job)
    # A letter of another job that says that the store is over is not for this one.
    shutil.copy(lab.path / f"shared/mosa-lab-{earlier}-0", lab.path / f"shared/mosa-lab-{job}-0")
    time.sleep(2)
    check(lab.processes("h2", name="mosa-storage"), "h2 has ended its part of the store")
    wrong = f"{lab.path}/shared/x"  # Where the job's user must not write, whoever asks.
    lab.run("h1", lab.path / "slurm/epilog", "--job", job, "--stage-out", wrong, code=1)
    lab.await_log(job, "cannot stage out to")
    lab.run("h1", lab.path / "slurm/epilog", "--job", job, "--stage-out", lab.path / "out/d")
    lab.run("c0", "scontrol", "update", "nodename=h1", "state=resume")
    lab.await_clean(job, hosts)
    check((lab.path / "out/d/results/1").read_text() == "of h2\n", "staged out something else")
    # In time: then no node is drained.
    lab.configure(hold_seconds=60)
    job = lab.submit("e", hosts, KEEP)
    lab.await_log(job, "keeps the store for up to 60 s")
    lab.run("h1", lab.path / "slurm/epilog", "--job", job, "--discard")
    lab.await_clean(job, hosts)


def check_cancelled(lab):
    hosts = HOSTS[2:]
    job = lab.submit("f", hosts, """
        srun sh -c 'exec 3>$MOSA_MOUNT/open.$SLURM_PROCID; echo open >&3; touch up.$SLURM_PROCID; sleep 600'
    """)  # fmt: skip
    ups = [lab.path / f"jobs/up.{number}" for number in (0, 1)]
    wait_until(lambda: all(up.exists() for up in ups), 30, "the tasks run")
    lab.run("c0", "scancel", job)
    lab.await_state(job, "CANCELLED")
    lab.await_clean(job, hosts)
    # In the middle of its prologs.
    job = lab.submit("g", hosts, "sleep 600")
    lab.await_state(job, "RUNNING", "CONFIGURING")
    lab.run("c0", "scancel", job)
    lab.await_clean(job, hosts)


def check_port_in_use(lab):
    """A prolog that cannot start says why, drains its own node alone, and the job runs when that is mended."""
    hosts = HOSTS[:2]
    lab.configure(port=7400)
    take = "import socket, time; s = socket.create_server(('10.0.0.1', 7400)); time.sleep(600)"
    other = lab.start("h1", "python3", "-c", take)
    job = lab.submit("h", hosts, "ls -A $MOSA_MOUNT; echo run $SLURM_RESTART_COUNT")
    wait_until(lambda: "drained" in lab.reason("h1"), 30, "h1 has ended the job")
    for text in (lab.reason("h1"), lab.await_log(job, "mosa-manager did not start")):
        check("h1:7400: the port is in use" in text, f"'{text}' does not say why")
    lab.await_log(job, "no store, since head node h1 says")
    lab.await_state(job, "PENDING")  # Slurm has requeued it, holds it, and waits until its nodes have forgotten it: cred_expire.
    wait_until(lambda: lab.reason("h2").startswith("idle"), 30, "h2 is not to blame")
    check(not lab.processes(*hosts, name="mosa"), "something of the store runs")
    other.kill()
    other.wait()
    lab.run("c0", "scontrol", "update", "nodename=h1", "state=resume")
    lab.run("c0", "scontrol", "release", job)
    check(lab.done("h", job, hosts) == "run 1\n", "the job did not run again")


def check_dead_daemons(lab):
    """Manager, storage nodes and a mount die, the files do not: they come back at the job's end, and results are staged out."""
    hosts = HOSTS[:2]
    lab.configure()
    job = lab.submit("i", hosts, KEEP + LARGE + PAUSE.format("i"), MOSA_STAGE_OUT=lab.path / "out/i")
    wait_until((lab.path / "jobs/up.i").exists, 30, "the job runs")
    for pid in lab.processes("h1", name="mosa-") + lab.processes("h2", name="mosa-storage"):
        kill(pid)
    lab.run("c0", "scancel", job)
    lab.await_clean(job, hosts)
    for number, host in enumerate(hosts):
        check((lab.path / f"out/i/results/{number}").read_text() == f"of {host}\n", f"that of {host} is not out")
    have = (lab.path / "out/i/results/large").read_bytes()
    check(have == b"large\n" * 500000, f"{len(have)} bytes, or others, of 3,000,000 are out")


def check_cut_off(lab):
    """Hosts of a job that do not reach each other for a while give up nothing: Slurm does not say that one is down."""
    hosts = head, other = HOSTS[2:]
    lab.configure(wait_seconds=3, hold_seconds=60)
    job = lab.submit("n", hosts, KEEP, MOSA_STAGE_OUT=lab.path / "late/n")
    lab.await_log(job, "cannot stage out to")
    for host, peer in ((head, other), (other, head)):
        lab.run(host, "ip", "route", "add", "blackhole", f"{lab.addresses[peer]}/32")
    (lab.path / "late").mkdir()
    os.chown(lab.path / "late", USER.pw_uid, USER.pw_gid)
    wait_until((lab.path / "late/n/results/0").exists, 30, "the head has copied what it has")
    lab.await_log(job, "late/n: cannot read")
    time.sleep(4)
    for host, peer in ((head, other), (other, head)):
        check(lab.processes(host, name="mosa-storage"), f"{host} has given up")
        lab.run(host, "ip", "route", "del", "blackhole", f"{lab.addresses[peer]}/32")
    lab.await_clean(job, hosts)
    check((lab.path / "late/n/results/1").read_text() == f"of {other}\n", "staged out something else")


def check_lost_hosts(lab):
    """A host that is lost takes along only what nobody else has; a head node that is lost does not hold the others."""
    head, other = HOSTS[2:]
    lab.configure(wait_seconds=4)
    job = lab.submit("k", [head, other], KEEP + PAUSE.format("k"), MOSA_STAGE_OUT=lab.path / "out/k")
    wait_until((lab.path / "jobs/up.k").exists, 30, "the job runs")
    lab.lose(other)
    line = lab.await_log(job, "gives up what was lost with a node")
    check("/results/1" in line, f"'{line}' does not name what is lost")
    lab.await_clean(job, [head])
    check((lab.path / "out/k/results/0").read_text() == f"of {head}\n", "staged out something else")

    head, other = HOSTS[1:3]
    job = lab.submit("l", [head, other], KEEP + PAUSE.format("l"))
    wait_until((lab.path / "jobs/up.l").exists, 30, "the job runs")
    lab.lose(head)
    lab.await_clean(job, [other], head_lost=True)


def test(arguments):
    with Lab(arguments.bin) as lab:
        begin = time.monotonic()
        earlier = check_two_at_once(lab)
        check_refusal(lab, earlier)
        for step in (check_slow_ending, check_cancelled, check_port_in_use, check_dead_daemons, check_cut_off,
                     check_lost_hosts):
            print(f"{time.monotonic() - begin:.1f} s: {step.__name__}", flush=True)
            step(lab)
        print(f"{time.monotonic() - begin:.1f} s", flush=True)


def missing():
    absent = [program for program in PROGRAMS if shutil.which(program, path="/usr/sbin:/usr/bin") is None]
    return f"{', '.join(absent)} missing: apt-get install slurmctld slurmd slurm-client munge attr" if absent else None


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}")
        raise SystemExit(cluster.SKIPPED)
    cluster.main(test, description=__doc__)
