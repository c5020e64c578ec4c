"""A mount that one user alone can use answers as a mount on which the kernel checks permissions.

Root makes the same small tree twice. The user does the same to both, to one through root's mount, which
others may use, to the other through his own. Errors and what becomes of the trees must be the same. Then
names that the kernel has cached must be out of reach once their directory may not be searched any more.
"""

import argparse
import errno
import multiprocessing
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys
import tempfile

import cluster

USER = GROUP = 65534
OTHER_USER, EXTRA_GROUP, FAR_GROUP = 1234, 200, 300
NOW, OMIT = "now", "omit"


def touch(path, access, modify):
    """utimensat(2) by coreutils, which knows UTIME_NOW and UTIME_OMIT."""
    flags = [flag for flag, value in (("-a", access), ("-m", modify)) if value != OMIT]
    when = [] if NOW in (access, modify) else ["-d", "@1000000000"]
    done = subprocess.run(["touch", "-c", *flags, *when, path], capture_output=True, text=True)
    for number in (errno.EACCES, errno.EPERM, errno.ENOENT):
        if os.strerror(number) in done.stderr:
            raise OSError(number, "")
    if done.returncode != 0:
        raise OSError(errno.EIO, done.stderr)


def open_and_close(path, flags):
    os.close(os.open(path, flags, 0o640))


def actions():
    """Name and what is done in a tree `t`: t/d has the file f and the directory s with the file g; t/e is empty."""
    for name, flags in (("r", os.O_RDONLY), ("w", os.O_WRONLY), ("rw", os.O_RDWR)):
        yield f"open {name}", lambda t, flags=flags: open_and_close(f"{t}/d/f", flags)
    yield "open and cut", lambda t: open_and_close(f"{t}/d/f", os.O_WRONLY | os.O_TRUNC)
    for mask in range(1, 8):
        yield f"access {mask}", lambda t, mask=mask: allowed(os.access(f"{t}/d/f", mask))
        yield f"access of a directory {mask}", lambda t, mask=mask: allowed(os.access(f"{t}/d", mask))
    yield "chdir", lambda t: (os.chdir(f"{t}/d"), os.chdir("/"))
    yield "list", lambda t: os.listdir(f"{t}/d")
    yield "stat", lambda t: os.stat(f"{t}/d/f")
    yield "stat below", lambda t: os.stat(f"{t}/d/s/g")
    yield "create", lambda t: open_and_close(f"{t}/d/new", os.O_WRONLY | os.O_CREAT)
    yield "create or open", lambda t: open_and_close(f"{t}/d/f", os.O_WRONLY | os.O_CREAT)
    yield "mkdir", lambda t: os.mkdir(f"{t}/d/new")
    yield "mkfifo", lambda t: os.mkfifo(f"{t}/d/new")
    yield "symlink", lambda t: os.symlink("x", f"{t}/d/new")
    yield "link", lambda t: os.link(f"{t}/d/s/g", f"{t}/e/new")
    yield "unlink", lambda t: os.unlink(f"{t}/d/f")
    yield "rmdir", lambda t: os.rmdir(f"{t}/e")
    yield "rename", lambda t: os.rename(f"{t}/d/f", f"{t}/d/new")
    yield "rename over", lambda t: os.rename(f"{t}/d/f", f"{t}/d/s/g")
    yield "move", lambda t: os.rename(f"{t}/d/f", f"{t}/e/new")
    yield "move a directory", lambda t: os.rename(f"{t}/d/s", f"{t}/e/new")
    for mode in (0o600, 0o755, 0o2755, 0o4711):
        yield f"chmod {mode:o}", lambda t, mode=mode: os.chmod(f"{t}/d/f", mode)
    for user, group in ((-1, GROUP), (-1, EXTRA_GROUP), (-1, FAR_GROUP), (USER, -1), (OTHER_USER, -1)):
        yield f"chown {user}:{group}", lambda t, u=user, g=group: os.chown(f"{t}/d/f", u, g)
    for access, modify in ((NOW, NOW), (NOW, OMIT), ("then", "then"), (OMIT, "then")):
        yield f"touch {access} {modify}", lambda t, a=access, m=modify: touch(f"{t}/d/f", a, m)
    yield "truncate", lambda t: os.truncate(f"{t}/d/f", 1)
    yield "getxattr", lambda t: os.getxattr(f"{t}/d/f", "user.kept")
    yield "setxattr", lambda t: os.setxattr(f"{t}/d/f", "user.new", b"1")
    yield "removexattr", lambda t: os.removexattr(f"{t}/d/f", "user.kept")
    yield "execute", lambda t: subprocess.run([f"{t}/d/f"], check=True, capture_output=True)


def allowed(is_allowed):
    if not is_allowed:
        raise OSError(errno.EACCES, "")


def make_tree(top, random_modes):
    """As root. The modes and owners are drawn from `random_modes`, the same for both trees."""
    os.mkdir(top)
    os.chmod(top, 0o777)
    script = b"#!/bin/sh\nexit 0\n"
    for path, content in (("d", None), ("e", None), ("d/f", script), ("d/s", None), ("d/s/g", b"g")):
        full = f"{top}/{path}"
        if content is None:
            os.mkdir(full)
        else:
            pathlib.Path(full).write_bytes(content)
            os.setxattr(full, "user.kept", b"x")
    for path in ("d/s/g", "d/s", "d/f", "d", "e"):
        owner = random_modes.choice((USER, USER, OTHER_USER))
        group = random_modes.choice((GROUP, EXTRA_GROUP, FAR_GROUP))
        mode = random_modes.randrange(0o1000)
        if random_modes.random() < 0.5:
            mode |= 0o111 if path in ("d/s/g", "d/f") else 0o711
        if path in ("d", "e") and random_modes.random() < 0.2:
            mode |= stat.S_ISVTX
        os.chown(f"{top}/{path}", owner, group)
        os.chmod(f"{top}/{path}", mode)


def tree_state(top):
    state = {}
    for directory, names, files in os.walk(top):
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            is_file = stat.S_ISREG(status.st_mode)
            state[os.path.relpath(path, top)] = (
                f"{status.st_mode:o}", status.st_uid, status.st_gid, status.st_size if is_file else None,
                sorted(os.listxattr(path, follow_symlinks=False)) if is_file else None)  # fmt: skip
    return state


def user_main(connection):
    """A process of the user: does what it is told, and answers with the name of the error."""
    os.setgroups([EXTRA_GROUP])
    os.setgid(GROUP)
    os.setuid(USER)
    os.umask(0o022)
    todo = dict(actions())
    todo["chmod the directory"] = lambda t: os.chmod(f"{t}/d", 0o600)
    while True:
        order = connection.recv()
        if order is None:
            return
        try:
            todo[order[0]](order[1])
            connection.send("ok")
        except subprocess.CalledProcessError as failure:
            connection.send(f"exit {failure.returncode}")
        except OSError as failure:
            connection.send(errno.errorcode.get(failure.errno, str(failure)))


class User:
    def __init__(self):
        self.connection, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=user_main, args=(theirs,), daemon=True)
        self.process.start()

    def do(self, action, top):
        self.connection.send((action, str(top)))
        cluster.check(self.connection.poll(60), f"'{action}' in {top} is not done after 60 s")
        return self.connection.recv()

    def end(self):
        self.connection.send(None)
        self.process.join(10)


class OwnMount:
    """The user's own mount, on the machine of the host."""

    def __init__(self, store, host, directory):
        self.path = directory / "own"
        self.path.mkdir()
        shutil.chown(self.path, USER, GROUP)
        secret = directory / "mount.pem"
        secrets = pathlib.Path(store.state["plan"]["directory"]) / "secrets"
        mount_secret = next(path for path in secrets.glob("*mount*"))
        shutil.copy(mount_secret, secret)
        shutil.chown(secret, USER, GROUP)
        secret.chmod(0o600)
        binary = directory / "mosa-mount"
        shutil.copy(store.binaries / "mosa-mount", binary)
        self.log = open(directory / "own.log", "wb")
        self.process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{store.host(host)['net_namespace']}", "setpriv", f"--reuid={USER}",
             f"--regid={GROUP}", f"--groups={EXTRA_GROUP}", binary, self.path, "--manager",
             store.state["manager_address"], "--name", host, "--secret", secret],
            stdout=self.log, stderr=self.log)  # fmt: skip
        cluster.wait_until(self.is_mounted, 20, f"the user's mount: see {directory / 'own.log'}")

    def is_mounted(self):
        cluster.check(self.process.poll() is None, pathlib.Path(self.log.name).read_text())
        return str(self.path) in pathlib.Path("/proc/mounts").read_text()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            subprocess.run(["umount", "-l", self.path], check=False, capture_output=True)
        self.log.close()


def give_fuse(directory):
    """On some machines only root may use /dev/fuse. This process has a mount namespace of its own."""
    device = os.stat("/dev/fuse")
    if stat.S_IMODE(device.st_mode) & 0o006 == 0o006:
        return
    open_to_all = directory / "fuse"
    os.mknod(open_to_all, stat.S_IFCHR, device.st_rdev)
    open_to_all.chmod(0o666)
    subprocess.run(["mount", "--bind", open_to_all, "/dev/fuse"], check=True)


def check_same(store, user, own, cases, seed):
    shared = pathlib.Path(store.mount("h1"))
    names = [name for name, _ in actions()]
    denied = 0
    for case in range(cases):
        draw = random.Random(f"{seed} {case}")
        action = names[case % len(names)]
        modes = draw.getrandbits(64)
        tops = [f"{kind}{case}" for kind in ("shared", "own")]
        for top in tops:
            make_tree(shared / top, random.Random(modes))
        before = tree_state(shared / tops[0])
        expected = user.do(action, shared / tops[0])
        answer = user.do(action, own.path / tops[1])
        about = f"'{action}' of seed {seed}, case {case}: {before}"
        cluster.check(expected == answer, f"{about}: {answer} on the user's mount, {expected} where the kernel checks")
        after = [tree_state(shared / top) for top in tops]
        cluster.check(after[0] == after[1], f"{about}: it became {after[1]}, not {after[0]}")
        denied += expected in ("EACCES", "EPERM")
    print(f"{cases} cases, {denied} of them denied")
    cluster.check(denied > cases / 10, "hardly anything was denied: this shows nothing")


def check_search(store, user, own):
    """Names that the kernel of the user's mount keeps are out of reach when their directory is closed."""
    shared = pathlib.Path(store.mount("h2"))
    for who in ("user", "other mount"):
        top = f"closed by the {who}"
        make_tree(shared / top, random.Random(1))
        for path, mode in (("d", 0o700), ("d/f", 0o600), ("d/s", 0o700)):
            os.chown(shared / top / path, USER, GROUP)
            os.chmod(shared / top / path, mode)
        for _ in range(3):
            cluster.check(user.do("stat below", own.path / top) == "ok", "the user cannot reach his own file")
        if who == "user":
            cluster.check(user.do("chmod the directory", own.path / top) == "ok", "the user cannot change his directory")
        else:
            os.chmod(shared / top / "d", 0o600)
        for action in ("stat", "stat below", "open r", "unlink"):
            answer = user.do(action, own.path / top)
            cluster.check(answer == "EACCES", f"'{action}' below a directory closed by the {who}: {answer}")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2, flags=["--allow-other"]) as store:
        directory = pathlib.Path(tempfile.mkdtemp(prefix="mosa-one-user-"))
        directory.chmod(0o755)
        own = user = None
        try:
            give_fuse(directory)
            own = OwnMount(store, "h1", directory)
            user = User()
            check_same(store, user, own, arguments.cases, arguments.seed)
            check_search(store, user, own)
        finally:
            if user:
                user.end()
            if own:
                own.end()
            shutil.rmtree(directory, ignore_errors=True)


def add_arguments(parser: argparse.ArgumentParser):
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)


if __name__ == "__main__":
    if os.geteuid() == 0 and "MOSA_OWN_MOUNTS" not in os.environ:
        os.environ["MOSA_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    cluster.main(test, limit_s=300, description=__doc__, add_arguments=add_arguments)
