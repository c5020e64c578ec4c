"""The stores that accuracy.py measures: each put up for a `with`, and what commands have to be told of it.

Mosa on a cluster of namespaces, whose links have a rate or none, with its objects on a RAM disk or on a disk (through the page
cache, so that what memory holds is not read from there); and GlusterFS on the hosts and links of such a cluster.
"""

import contextlib
import shutil
import subprocess

from accuracy_cells import MANY_HOSTS, RAM, RAM_OF_MANY
from cluster import Cluster, check, start_ticks, wait_until
from peer_stores import Gluster


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
