"""The stores that accuracy.py measures: each put up for a `with`, and what commands have to be told of it.

Mosa on a cluster of namespaces, whose links have a rate or none, with its objects on a RAM disk or on a disk (through the page
cache, so that what memory holds is not read from there); and GlusterFS on the hosts and links of such a cluster.
"""

import contextlib
import pathlib
import shutil
import subprocess

from accuracy_cells import MANY_HOSTS, RAM, RAM_OF_MANY
from cluster import Cluster, check, start_ticks, wait_until

RAM_DISK = pathlib.Path("/dev/shm")


class Mosa(Cluster):
    def __init__(self, binaries, hosts, *, rate, ram, disk=None, storage=0, flags=()):
        """`disk`: a directory there, for objects. `storage`: so many further hosts only store, and `hosts` only run tasks."""
        super().__init__(binaries, hosts + storage, rate=None if rate == "none" else rate, ram=ram, flags=flags)
        self.storage = storage
        self.disk = disk and disk / f"mosa-accuracy-{self.name}"

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            super().__enter__()
            undo.push(self.__exit__)
            if self.disk:
                self._move_objects()
            if self.storage:
                self._set_apart()
            undo.pop_all()
        return self

    def __exit__(self, *error):
        try:
            super().__exit__(*error)
        finally:
            if self.disk:
                shutil.rmtree(self.disk, ignore_errors=True)

    def _move_objects(self):
        """Every node begins anew, with a directory of the disk mounted over its RAM disk."""
        for host in self.hosts:
            own = self.disk / host
            own.mkdir(parents=True)
            own.chmod(0o700)
            command = self.kill("storage", host)
            objects = command[command.index("--dir") + 1]
            done = subprocess.run(["mount", "--bind", own, objects], capture_output=True, text=True, check=False)
            check(done.returncode == 0, f"mount --bind {own} {objects}: {done.stderr}")
            self.start("storage", host, command)

    def _set_apart(self):
        """A drained node takes no files, and `mosa run` leaves out hosts without a mount. As `mosa predict` has them, those that
        only store are the last."""
        for host in self.hosts[:-self.storage]:
            self.tell("node", "drain", host)
        for host in self.hosts[-self.storage:]:
            pid = self.pid("mount", host)
            done = subprocess.run(["umount", self.mount(host)], capture_output=True, text=True)
            check(done.returncode == 0, f"umount {self.mount(host)}: {done.stderr}")
            wait_until(lambda p=pid: start_ticks(p) == 0, 10, f"the end of the mount of {host}")

    def words(self):
        """For `mosa identify`."""
        return ["--cluster", self.name, "--dir", self.directory]

    def bench_words(self, system):
        """For `mosa bench patterns`: where, and which system."""
        name, _, copies = system.partition("-")
        return [*self.words(), "--systems", name, *(["--replicas", copies] if copies else [])]


class Gluster(Cluster):
    """A daemon and a brick for each volume on every host. Each daemon has a file system view of its own, since where it
    keeps its state is compiled in. Everything that it starts ends with it."""

    VOLUMES: tuple[str, ...] = ("dht", "nufa")
    SERVERS: tuple[str, ...] = ()  # Hosts with daemons and bricks; none: all of them.

    def __init__(self, binaries, hosts, *, rate, ram="64M"):
        """`ram`: of the cluster's own store, of which otherwise only hosts and links are used."""
        super().__init__(binaries, hosts, rate=rate, ram=ram)
        self.base = RAM_DISK / f"gluster-accuracy-{self.name}"

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            super().__enter__()
            undo.push(self.__exit__)
            self._start()
            undo.pop_all()
        return self

    def __exit__(self, *error):
        for volume in self.VOLUMES:
            for host in self.hosts:
                subprocess.run(["umount", "-l", self._mount(volume, host)], capture_output=True, check=False)
        for child in self.children:
            child.kill()
            child.wait()
        try:
            super().__exit__(*error)
        finally:
            shutil.rmtree(self.base, ignore_errors=True)

    def words(self):
        """By the volume whose files are where they are written, as `mosa identify` takes them to be. Hosts that are entered are
        reached as if by ssh: at the address on the way to who started them."""
        towards = self.host(self.hosts[0])["address"]
        enter = f"nsenter --net=/run/netns/mosa-{self.name}-{{host}} -- env SSH_CONNECTION={towards} sh -c"
        return ["--mount", self._mount("nufa", "{host}"), "--hosts", ",".join(self.hosts[:3]), "--exec", enter]

    def bench_words(self, system):
        return ["--cluster", self.name, "--dir", self.directory, "--systems", f"path={system}:{self._mount(system, '{host}')}"]

    def _mount(self, volume, host):
        return f"{self.base}/mount/{volume}/{host}"

    def _spawn(self, host, *command):
        enter = ["nsenter", f"--net=/run/netns/{self.host(host)['net_namespace']}", *map(str, command)]
        with open(self.base / f"{host}.log", "ab") as log:
            self.children.append(subprocess.Popen(enter, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  start_new_session=True))
        return self.children[-1].pid

    def _gluster(self, daemon, *words, required=True):
        inside = pathlib.Path(f"/proc/{daemon}/task/{daemon}/children").read_text(encoding="utf-8").split()
        if not inside:
            return None
        done = subprocess.run(["nsenter", "-t", inside[0], "-m", "-n", "-p", "--", "gluster", "--mode=script", *words],
                              capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == 0 or not required, f"gluster {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout if done.returncode == 0 else None

    def _start(self):
        check(shutil.which("glusterd"), "there is no glusterd: install glusterfs-server")
        servers = self.SERVERS or self.hosts
        daemons = {}
        for host in servers:
            own = self.base / host
            for part in ("lib", "log", "brick"):
                (own / part).mkdir(parents=True)
            script = (f"hostname {host} && mount --bind {own}/lib /var/lib/glusterd && "
                      f"mount --bind {own}/log /var/log/glusterfs && mount -t tmpfs run /run && mkdir -p /run/gluster && "
                      "exec glusterd --no-daemon")
            daemons[host] = self._spawn(host, "unshare", "-m", "-u", "-p", "-f", "--kill-child=SIGKILL", "--mount-proc", "--",
                                        "sh", "-c", script)
        for host, daemon in daemons.items():
            wait_until(lambda d=daemon: self._gluster(d, "pool", "list", required=False), 60, f"glusterd of {host}")
        first = daemons[servers[0]]
        addresses = {host: self.host(host)["address"] for host in servers}
        for host in servers[1:]:
            self._gluster(first, "peer", "probe", addresses[host])
        for daemon in daemons.values():
            wait_until(lambda d=daemon: (self._gluster(d, "pool", "list") or "").count("Connected") == len(daemons), 60,
                       "the pool of all hosts")
        for volume in self.VOLUMES:
            bricks = [f"{addresses[host]}:{self.base}/{host}/brick/{volume}" for host in servers]
            self._gluster(first, "volume", "create", volume, *bricks, "force")
            if volume == "nufa":
                self._gluster(first, "volume", "set", volume, "cluster.nufa", "on")
            self._gluster(first, "volume", "start", volume)
            for host in self.hosts:
                self._mount_on(host, volume, addresses.get(host, addresses[servers[0]]))

    def _mount_on(self, host, volume, server):
        mount = pathlib.Path(self._mount(volume, host))
        mount.mkdir(parents=True)
        self._spawn(host, "glusterfs", "--no-daemon", "-s", server, "--volfile-id", volume, "-l",
                    self.base / f"{volume}-{host}.log", mount)
        wait_until(mount.is_mount, 60, f"the mount of {volume} on {host}")


def ram_of(arguments, cell):
    return arguments.ram or (RAM if cell.hosts < MANY_HOSTS else RAM_OF_MANY)


def settings_of(arguments, cell):
    """What a cell's figures depend on besides the cell and the programs."""
    return {"ram": ram_of(arguments, cell), "disk": str(arguments.disk) if cell.store == "disk" else None}


def store_of(arguments, cell):
    """For a `with`: the store of such a cell."""
    if cell.store == "gluster":
        return Gluster(arguments.bin, cell.hosts, rate=cell.rate)
    disk = arguments.disk if cell.store == "disk" else None
    return Mosa(arguments.bin, cell.hosts, rate=cell.rate, ram=ram_of(arguments, cell), disk=disk)


def platform_key(cell):
    """Cells of one key are predicted with one platform file."""
    return cell.rate if cell.store == "mosa" else cell.store


def configuration_of(arguments, cell):
    """For `mosa predict`."""
    common = f"hosts={cell.hosts},manager=apart,slots=1"
    if cell.store == "gluster":
        return f"{common},system=dss," + {"dht": "placement=stripe,stripe=1", "nufa": "placement=local"}[cell.system]
    return f"{common},system={cell.system.partition('-')[0]},store={ram_of(arguments, cell)}"
