"""Other stores on the hosts and links of a Mosa cluster: each put up for a `with`, with a mount on every host.

All their files are on a RAM disk, and everything that they start ends with them.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess

from cluster import Cluster, check, wait_until

RAM_DISK = pathlib.Path("/dev/shm")
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class PeerStore(Cluster):
    """A subclass names its VOLUMES and PROGRAMS, and puts itself up in _start()."""

    VOLUMES: tuple[str, ...] = ()
    PROGRAMS: tuple[tuple[str, str], ...] = ()  # Each with the package that has it.

    @classmethod
    def why_not(cls):
        """Why it cannot be put up here, or None."""
        missing = [package for program, package in cls.PROGRAMS if not shutil.which(program, path=SEARCHED)]
        return f"{', '.join(missing)} not installed" if missing else None

    def __init__(self, binaries, hosts, *, rate, ram="64M"):
        """`ram`: of the cluster's own store, of which otherwise only hosts and links are used."""
        super().__init__(binaries, hosts, rate=rate, ram=ram)
        self.base = RAM_DISK / f"peer-{self.name}"

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

    def _mount(self, volume, host):
        return f"{self.base}/mount/{volume}/{host}"

    def _spawn(self, host, *command):
        enter = ["nsenter", f"--net=/run/netns/{self.host(host)['net_namespace']}", *map(str, command)]
        with open(self.base / f"{host}.log", "ab") as log:
            self.children.append(subprocess.Popen(enter, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  start_new_session=True))
        return self.children[-1].pid

    def mount_of(self, host):
        return self._mount(self.VOLUMES[0], host)

    def _start(self):
        raise NotImplementedError


class Gluster(PeerStore):
    """A daemon and a brick for each volume on every host. Each daemon has a file system view of its own, since where it
    keeps its state is compiled in. Everything that it starts ends with it."""

    VOLUMES: tuple[str, ...] = ("dht", "nufa")
    PROGRAMS = (("glusterd", "glusterfs-server"), ("glusterfs", "glusterfs-client"))
    SERVERS: tuple[str, ...] = ()  # Hosts with daemons and bricks; none: all of them.

    def words(self):
        """By the volume whose files are where they are written, as `mosa identify` takes them to be. Hosts that are entered are
        reached as if by ssh: at the address on the way to who started them."""
        towards = self.host(self.hosts[0])["address"]
        enter = f"nsenter --net=/run/netns/mosa-{self.name}-{{host}} -- env SSH_CONNECTION={towards} sh -c"
        return ["--mount", self._mount("nufa", "{host}"), "--hosts", ",".join(self.hosts[:3]), "--exec", enter]

    def bench_words(self, system):
        return ["--cluster", self.name, "--dir", self.directory, "--systems", f"path={system}:{self._mount(system, '{host}')}"]

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


class MooseFs(PeerStore):
    """The master on the first host; a chunk server and a mount on every host; one copy of each file."""

    VOLUMES = ("moosefs",)
    PROGRAMS = (("mfsmaster", "moosefs-master"), ("mfschunkserver", "moosefs-chunkserver"), ("mfsmount", "moosefs-client"))

    def _start(self):
        addresses = {host: self.host(host)["address"] for host in self.hosts}
        master = addresses[self.hosts[0]]
        network = master.rpartition(".")[0] + ".0/24"
        self._serve(self.hosts[0], "mfsmaster", {
            "exports.cfg": f"{network} / rw,alldirs,admin,maproot=0:0\n{network} . rw\n", "topology.cfg": "",
        }, "EXPORTS_FILENAME = {etc}/exports.cfg\nTOPOLOGY_FILENAME = {etc}/topology.cfg\n", first="MFSM NEW")
        wait_until(lambda: self._listens(self.hosts[0], master, 9421), 30, "mfsmaster")
        for host in self.hosts:
            (self.base / host / "objects").mkdir(parents=True)
            self._serve(host, "mfschunkserver", {"hdd.cfg": f"{self.base / host / 'objects'}\n"},
                        f"MASTER_HOST = {master}\nHDD_CONF_FILENAME = {{etc}}/hdd.cfg\nHDD_LEAVE_SPACE_DEFAULT = 64MiB\n")
        for host in self.hosts:
            wait_until(lambda h=host: self._listens(h, addresses[h], 9422), 30, f"mfschunkserver of {host}")
        for host in self.hosts:
            mount = pathlib.Path(self.mount_of(host))
            mount.mkdir(parents=True)
            self._spawn(host, "mfsmount", "-f", "-H", master, mount, "-o", "mfspassword=")
            wait_until(mount.is_mount, 60, f"the mount of {host}")
        probe = pathlib.Path(self.mount_of(self.hosts[0])) / "probe"
        wait_until(lambda: self._takes_bytes(probe), 30, "room on the chunk servers")

    def _serve(self, host, program, files, settings, first=None):
        etc, data = (self.base / f"{host}-{program}" / part for part in ("etc", "var"))
        for part in (etc, data):
            part.mkdir(parents=True)
        for name, text in files.items():
            (etc / name).write_text(text, encoding="utf-8")
        if first:
            (data / "metadata.mfs").write_text(first, encoding="utf-8")
        common = f"WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = {data}\n"
        (etc / "main.cfg").write_text(common + settings.format(etc=etc), encoding="utf-8")
        self._spawn(host, shutil.which(program, path=SEARCHED), "-f", "-c", etc / "main.cfg", "start")

    def _listens(self, host, address, port):
        return self.exec(host, "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}").returncode == 0

    @staticmethod
    def _takes_bytes(path):
        try:
            path.write_bytes(b"x" * 4096)
        except OSError:
            return False
        path.unlink()
        return True
