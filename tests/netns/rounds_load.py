"""The mixed load of a round: processes that write through mounts, and processes that read.

Each writes a journal outside of Mosa, one JSON object a line: an operation with its begin, end and
outcome (history.Operation), an append, a read, or a wait of a second and more. Times are of
CLOCK_MONOTONIC, which all processes of this machine share.
"""

import errno
import json
import mmap
import multiprocessing
import os
import random
import struct
import time

import history
from history import ABSENT, BLOCK, OK, State

SLOTS = 10  # Names of each class of each writer.
LONG_WAIT_S = 1.0
INLINE_MAX = 16 << 10
FILE_BLOCKS_MAX = 96
LOG_BYTES_MAX = 3 << 20
CLASSES = {
    # directory: hints of what is made there
    "plain": {},
    "local": {"placement": "local"},
    "striped": {"pattern": "scatter:64K"},
    "lazy": {"placement": "local", "replicas": "2"},
    "copied": {"pattern": "broadcast:2"},
}
PATIENCE_S = 40  # What a process may be late at the end of a round.


def name_of_error(error):
    return errno.errorcode.get(error.errno, str(error.errno))


def make_directories(root, writers):
    """The directories of a round, below `root`."""
    os.mkdir(root)
    os.mkdir(f"{root}/logs")
    for writer in range(writers):
        os.mkdir(f"{root}/w{writer}")
        for name, hints in CLASSES.items():
            path = f"{root}/w{writer}/{name}"
            os.mkdir(path)
            for hint, value in hints.items():
                os.setxattr(path, f"user.mosa.{hint}", value.encode())


def names(writers):
    return [
        f"w{writer}/{group}/f{slot}"
        for writer in range(writers)
        for group in CLASSES
        for slot in range(SLOTS)
    ]


class Journal:
    """Lines of one process, and how long its system calls take."""

    def __init__(self, path):
        self.file = open(path, "w", buffering=1)
        self.mount = ""

    def line(self, what, **fields):
        self.file.write(json.dumps({"what": what, **fields}) + "\n")

    def call(self, function, *arguments):
        begin = time.monotonic()
        try:
            return function(*arguments)
        finally:
            self.wait(begin, function.__name__)

    def wait(self, begin, call):
        end = time.monotonic()
        if end - begin > LONG_WAIT_S:
            self.line("wait", begin=begin, end=end, call=call, mount=self.mount)


def device_of(journal, root):
    """Which mount is there, or None: between a mount's death and its next start there is none."""
    try:
        return journal.call(os.stat, root).st_dev
    except OSError:
        return None


def outcome_of(journal, root, device, error):
    """The error's name; UNMOUNTED if what was not there may have been the mount."""
    name = name_of_error(error)
    if name == history.ABSENT_ANSWER and (device is None or device_of(journal, root) != device):
        return history.UNMOUNTED
    return name


def read_all(journal, path):
    descriptor = journal.call(os.open, path, os.O_RDONLY)
    try:
        parts = []
        while part := journal.call(os.read, descriptor, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        journal.call(os.close, descriptor)


def write_all(journal, descriptor, data, offset=None):
    view = memoryview(data)
    while view:
        if offset is None:
            done = journal.call(os.write, descriptor, view)
        else:
            done = journal.call(os.pwrite, descriptor, view, offset)
            offset += done
        view = view[done:]


class Process:
    """A process of the load; stop() ends it."""

    def __init__(self, run, journal_path, *arguments):
        context = multiprocessing.get_context("fork")
        self.stopping = context.Event()
        self.journal_path = journal_path

        def body():
            journal = Journal(journal_path)
            run(journal, self.stopping, *arguments)
            journal.line("end")

        self.process = context.Process(target=body, daemon=True)
        self.process.start()

    def finished(self, limit):
        """Whether it has ended by itself by `limit` (time.monotonic)."""
        self.process.join(max(0.1, limit - time.monotonic()))
        if self.process.is_alive():
            self.process.kill()
            return False
        return True


class Writer:
    """Operations on names of its own, through any mount; its own one mostly."""

    def __init__(self, journal, root_of, home, number, seed):
        self.journal, self.root_of, self.home = journal, root_of, home
        self.prefix = f"w{number}"
        self.random = random.Random(seed)
        self.mounts = sorted(root_of)
        self.known = {n: ABSENT for n in names(number + 1) if n.startswith(self.prefix + "/")}
        self.uncertain, self.given_up = set(), set()
        self.version = (number + 1) * 1_000_000

    def run(self, stopping):
        while not stopping.is_set():
            self._step()
            time.sleep(self.random.uniform(0, 0.02))

    def _step(self):
        usable = sorted(set(self.known) - self.given_up)
        if not usable:
            time.sleep(0.1)
            return
        name = self.random.choice(usable)
        mount = self.home if self.random.random() < 0.7 else self.random.choice(self.mounts)
        self.version += 1
        operation = self._choose(name)
        root = self.root_of[mount]
        self.journal.mount = mount
        device = device_of(self.journal, root)
        begin = time.monotonic()
        try:
            getattr(self, operation["kind"])(root, operation)
            outcome = OK
        except OSError as error:
            outcome = outcome_of(self.journal, root, device, error)
        end = time.monotonic()
        how = operation.pop("how", "")
        self.journal.line(
            "operation", begin=begin, end=end, outcome=outcome, mount=mount, how=how, **operation
        )
        self._learn(operation, outcome)
        if outcome != OK:
            time.sleep(0.05)

    def _learn(self, operation, outcome):
        touched = {operation["name"], operation.get("target") or operation["name"]}
        if outcome == OK:
            step = history.Operation(0, 0, outcome=OK, **operation)
            source = frozenset({self.known[step.name]})
            for name in touched:
                is_target = step.kind == "rename" and name == step.target
                (self.known[name],) = history.after(step, self.known[name], is_target, source)
            self.uncertain -= touched
        elif outcome == history.ABSENT_ANSWER and operation["kind"] == "unlink":
            self.known[operation["name"]] = ABSENT
            self.uncertain -= touched
        elif outcome in history.GONE:
            self.given_up |= touched
        else:
            self.uncertain |= touched

    def _choose(self, name):
        state, chance = self.known[name], self.random.random()
        operation = {"name": name, "version": self.version}
        if name in self.uncertain:
            kind = self.random.choice(("put", "replace", "unlink"))
            return operation | {"kind": kind} | self._size(kind)
        if state is ABSENT or chance < 0.15:
            kind = "put" if self.random.random() < 0.7 else "replace"
            return operation | {"kind": kind} | self._size(kind)
        if chance < 0.25:
            return {"name": name, "kind": "unlink"}
        if chance < 0.4:
            directory = name.rpartition("/")[0]
            others = [
                other
                for other in self.known
                if other.startswith(directory + "/")
                and other != name
                and other not in self.given_up | self.uncertain
            ]
            if others:
                return {"name": name, "kind": "rename", "target": self.random.choice(others)}
        if state.size == 0 or state.size % BLOCK:
            return operation | {"kind": "replace"} | self._size("replace")
        return operation | self._in_place(len(state.blocks), chance)

    def _size(self, kind):
        if kind == "unlink":
            return {}
        if self.random.random() < 0.35:
            return {"size": self.random.randrange(32, INLINE_MAX, history.WORD.size)}
        return {"size": BLOCK * self.random.randrange(1, FILE_BLOCKS_MAX)}

    def _in_place(self, blocks, chance):
        if chance < 0.5 and blocks < 2 * FILE_BLOCKS_MAX:
            return {"kind": "append", "count": self.random.randrange(1, 33)}
        if chance < 0.55:
            return {"kind": "truncate", "size": BLOCK * self.random.randrange(0, blocks + 1)}
        first = self.random.randrange(blocks)
        count = self.random.randrange(1, blocks - first + 1)
        how = "mmap" if chance < 0.7 else self.random.choice(("fsync", "close"))
        return {"kind": "overwrite", "first": first, "count": count, "how": how}

    # ---- the operations

    def _close_after(self, descriptor, act):
        """Closes also after a failure; what was answered first stands."""
        try:
            act()
        except OSError:
            try:
                self.journal.call(os.close, descriptor)
            except OSError:
                pass
            raise
        self.journal.call(os.close, descriptor)

    def _make(self, path, operation):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = self.journal.call(os.open, path, flags, 0o644)
        data = history.content(operation["version"], operation["size"])
        self._close_after(descriptor, lambda: write_all(self.journal, descriptor, data))

    def put(self, root, operation):
        self._make(f"{root}/{operation['name']}", operation)

    def replace(self, root, operation):
        path = f"{root}/{operation['name']}"
        temporary = f"{path}.{operation['version']}"
        self._make(temporary, operation)
        operation["stored"] = time.monotonic()
        self.journal.call(os.rename, temporary, path)

    def unlink(self, root, operation):
        self.journal.call(os.unlink, f"{root}/{operation['name']}")

    def rename(self, root, operation):
        source, target = f"{root}/{operation['name']}", f"{root}/{operation['target']}"
        self.journal.call(os.rename, source, target)

    def truncate(self, root, operation):
        self.journal.call(os.truncate, f"{root}/{operation['name']}", operation["size"])

    def append(self, root, operation):
        path = f"{root}/{operation['name']}"
        first = len(self.known[operation["name"]].blocks)
        data = history.content(operation["version"], operation["count"] * BLOCK, first)
        descriptor = self.journal.call(os.open, path, os.O_WRONLY | os.O_APPEND)
        self._close_after(descriptor, lambda: write_all(self.journal, descriptor, data))

    def overwrite(self, root, operation):
        path = f"{root}/{operation['name']}"
        first, count = operation["first"], operation["count"]
        data = history.content(operation["version"], count * BLOCK, first)
        if operation["how"] == "mmap":
            self._overwrite_mapped(path, first * BLOCK, data)
            return
        descriptor = self.journal.call(os.open, path, os.O_WRONLY)

        def act():
            write_all(self.journal, descriptor, data, first * BLOCK)
            if operation["how"] == "fsync":
                self.journal.call(os.fsync, descriptor)

        self._close_after(descriptor, act)

    def _overwrite_mapped(self, path, offset, data):
        """In a process of its own: where the mount dies, a store raises SIGBUS. The kernel may wait
        for each page."""
        begun = mmap.mmap(-1, 8)  # When the child's last store began.
        struct.pack_into("d", begun, 0, time.monotonic())
        child = os.fork()
        if child == 0:
            code = 1
            try:
                descriptor = self.journal.call(os.open, path, os.O_RDWR)
                with mmap.mmap(descriptor, 0) as mapped:

                    def store(at):
                        struct.pack_into("d", begun, 0, time.monotonic())
                        mapped[offset + at : offset + at + BLOCK] = data[at : at + BLOCK]

                    for at in range(0, len(data), BLOCK):
                        self.journal.call(store, at)
                    self.journal.call(mapped.flush)
                self.journal.call(os.close, descriptor)
                code = 0
            except OSError as error:
                code = error.errno if 0 < error.errno < 128 else 1
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            self.journal.wait(struct.unpack("d", begun)[0], "store")
            raise OSError(errno.ENOTCONN, "killed by a signal")
        if os.WEXITSTATUS(status) != 0:
            raise OSError(os.WEXITSTATUS(status), "of a mapped write")


def run_writer(journal, stopping, *arguments):
    Writer(journal, *arguments).run(stopping)


def run_appender(journal, stopping, root_of, home, number, seed):
    """Appends records to logs that others append to as well, from the newest log on."""
    chooser = random.Random(seed)
    record, log = (100 + number) * 1_000_000, 0
    journal.mount = home
    while not stopping.is_set():
        record += 1
        units = chooser.choice((1, 3, 32, 700, 2500))
        name = f"logs/log{log}"
        size, device = 0, device_of(journal, root_of[home])
        begin = time.monotonic()
        try:
            size = append_record(journal, f"{root_of[home]}/{name}", record, units)
            outcome = OK
        except OSError as error:
            outcome = outcome_of(journal, root_of[home], device, error)
        times = {"begin": begin, "end": time.monotonic(), "mount": home}
        journal.line("append", name=name, outcome=outcome, record=record, units=units, **times)
        log += size > LOG_BYTES_MAX or outcome != OK
        time.sleep(chooser.uniform(0, 0.04))


def append_record(journal, path, record, units):
    """One write, one close; returns the log's size, as this mount sees it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    descriptor = journal.call(os.open, path, flags, 0o644)
    try:
        data = history.record_bytes(record, units)
        done = journal.call(os.write, descriptor, data)
        if done != len(data):
            raise OSError(errno.ENOSPC, "a short write")
        size = os.fstat(descriptor).st_size
    except OSError:
        try:
            journal.call(os.close, descriptor)
        except OSError:
            pass
        raise
    journal.call(os.close, descriptor)
    return size


def look(journal, root, name, mount, final):
    """Reads a name, and writes down what is there."""
    device = device_of(journal, root)
    begin = time.monotonic()
    fields = {}
    try:
        data = read_all(journal, f"{root}/{name}")
        outcome = OK
        if name.startswith("logs/"):
            fields["pieces"] = history.pieces_of(data)
        else:
            state = history.state_of(data)
            fields["state"] = [state.size, list(state.blocks)]
    except OSError as error:
        outcome = outcome_of(journal, root, device, error)
        outcome = OK if outcome == history.ABSENT_ANSWER else outcome
    times = {"begin": begin, "end": time.monotonic(), "mount": mount, "final": final}
    journal.line("read", name=name, outcome=outcome, **times, **fields)
    return outcome


def run_reader(journal, stopping, root, mount, wanted, seed):
    chooser = random.Random(seed)
    journal.mount = mount
    while not stopping.is_set():
        name = chooser.choice(wanted)
        for _ in range(chooser.choice((1, 1, 2))):
            if look(journal, root, name, mount, False) != OK:
                time.sleep(0.05)
        time.sleep(chooser.uniform(0, 0.02))


def run_final_reader(journal, stopping, root, mount, wanted, limit):
    """Reads everything; what answers an error is read again until `limit`."""
    journal.mount = mount
    for name in wanted:
        if stopping.is_set():
            return
        while look(journal, root, name, mount, False) != OK and time.monotonic() < limit:
            time.sleep(0.3)
        look(journal, root, name, mount, True)


# ---- journals


class Records:
    """What the journals of a round say."""

    def __init__(self, paths):
        self.operations, self.reads, self.waits = [], [], []
        self.appends, self.log_reads = {}, {}
        self.acknowledged_bytes, self.errors = 0, {}
        for path in paths:
            with open(path) as lines:
                for line in lines:
                    if line.endswith("\n"):
                        self._add(json.loads(line))

    def _add(self, fields):
        what = fields.pop("what")
        getattr(self, f"_add_{what}")(fields)

    def _add_end(self, _):
        pass

    def _add_wait(self, fields):
        self.waits.append(fields)

    def _add_operation(self, fields):
        fields.pop("how", None)
        operation = history.Operation(**fields)
        self.operations.append(operation)
        size = operation.size if operation.kind in ("put", "replace") else operation.count * BLOCK
        self._count(operation.outcome, size)

    def _add_append(self, fields):
        self.appends.setdefault(fields["name"], []).append(history.Append(**fields))
        self._count(fields["outcome"], fields["units"] * history.WORD.size)

    def _count(self, outcome, size):
        if outcome == OK:
            self.acknowledged_bytes += size
        else:
            self.errors[outcome] = self.errors.get(outcome, 0) + 1

    def _add_read(self, fields):
        if fields["name"].startswith("logs/"):
            fields["pieces"] = tuple(tuple(piece) for piece in fields.pop("pieces", ()))
            self.log_reads.setdefault(fields["name"], []).append(history.LogRead(**fields))
            return
        state = fields.pop("state", None)
        seen = State(state[0], tuple(state[1])) if state else ABSENT
        self.reads.append(history.Read(state=seen, **fields))
