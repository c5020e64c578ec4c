"""What a store may answer, given a journal of what it acknowledged. Pure: no files, no clocks.

A journal is a list of operations and reads, with times of one clock, in seconds. Operations on one
name do not overlap each other; reads may overlap anything. Every block of every file names the
version that wrote it, so that a read says by itself what it has seen.

The rules, for each name:
- After an operation was acknowledged, every later open sees its effect, or that of a newer one.
- While an operation is under way, an open sees the state before, the state after or, of bytes that
  are written in place, blocks of both.
- An operation that answered an error may have happened, but not later than the answer. One whose
  mount died (GONE) may still happen until the mount's session has ended.
- Zeroes, foreign bytes and blocks of two versions are never right, but where a write failed.
"""

import dataclasses
import struct
import zlib

BLOCK = 4096
ZERO, MIXED, FOREIGN = 0, -1, -2  # Instead of a version: what a block held.
ABSENT = None
OK, ABSENT_ANSWER = "ok", "ENOENT"
UNMOUNTED = "UNMOUNTED"  # There was no mount to ask.
GONE = ("ENOTCONN", "ECONNABORTED", UNMOUNTED)
SETTLES_S = 20.0  # A dead mount's session has ended, and what it left is repaired.
WORD = struct.Struct("<4sIQIIQ")  # Magic, checksum, version, index, zero, version again: 32 bytes.
MAGIC = b"MOSA"


# ---- bytes


def _word(version, index):
    body = struct.pack("<QIIQ", version, index, 0, version)
    return MAGIC + struct.pack("<I", zlib.crc32(body)) + body


def block(version, index):
    return _word(version, index) * (BLOCK // WORD.size)


def content(version, size, first=0):
    """The bytes of a version from block `first` on."""
    count = -(-size // BLOCK)
    return b"".join(block(version, first + k) for k in range(count))[:size]


def version_of_block(data, index):
    """The one version whose bytes these are; ZERO, MIXED or FOREIGN else."""
    if not any(data):
        return ZERO
    if len(data) >= WORD.size:
        magic, _, version, at, _, _ = WORD.unpack_from(data)
        if magic == MAGIC and at == index and data == block(version, index)[: len(data)]:
            return version
    return MIXED if data.count(MAGIC) else FOREIGN


def state_of(data):
    """(size, versions of its blocks) of what was read."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    return State(len(data), tuple(version_of_block(b, k) for k, b in enumerate(blocks)))


@dataclasses.dataclass(frozen=True)
class State:
    size: int
    blocks: tuple

    def __str__(self):
        runs = []
        for version in self.blocks:
            if runs and runs[-1][0] == version:
                runs[-1][1] += 1
            else:
                runs.append([version, 1])
        shown = " ".join(f"{_version_text(version)}x{count}" for version, count in runs)
        return f"{self.size} bytes [{shown}]"


def _version_text(version):
    return {ZERO: "zeroes", MIXED: "mixed", FOREIGN: "foreign"}.get(version, f"v{version}")


def text_of(state):
    return "absent" if state is ABSENT else str(state)


# ---- operations


@dataclasses.dataclass
class Operation:
    """kind: put, replace, overwrite, append, truncate, rename, unlink; its arguments by kind:
    put, replace: version, size. overwrite: version, first, count (blocks). append: version, count.
    truncate: size. rename: target."""

    begin: float
    end: float
    kind: str
    name: str
    outcome: str
    mount: str = ""
    version: int = 0
    size: int = 0
    first: int = 0
    count: int = 0
    target: str = ""
    stored: float = 0  # replace: when the close of what was written returned.

    def __str__(self):
        what = {
            "put": f"v{self.version} {self.size} bytes",
            "replace": f"v{self.version} {self.size} bytes, stored {self.stored:.3f}",
            "overwrite": f"v{self.version} blocks {self.first}+{self.count}",
            "append": f"v{self.version} {self.count} blocks",
            "truncate": f"to {self.size} bytes",
            "rename": f"to {self.target}",
            "unlink": "",
        }[self.kind]
        times = f"{self.begin:.3f}..{self.end:.3f}"
        return f"{times} {self.mount} {self.kind} {self.name} {what} -> {self.outcome}"

    @property
    def certain_from(self):
        """From when on it does not happen any more if it has not yet."""
        return self.end + (SETTLES_S if self.outcome in GONE else 0)


@dataclasses.dataclass
class Read:
    begin: float
    end: float
    name: str
    outcome: str  # OK, or an error's name; a name that was not there is OK with ABSENT.
    state: "State | None" = ABSENT
    mount: str = ""
    final: bool = False  # The system was at rest.

    def __str__(self):
        seen = text_of(self.state) if self.outcome == OK else self.outcome
        times = f"{self.begin:.3f}..{self.end:.3f}"
        return f"{times} {self.mount} {'final ' if self.final else ''}read {self.name}: {seen}"


@dataclasses.dataclass(frozen=True)
class Violation:
    kind: str  # "lost", "stale", "mixed", "zeroes", "cut", "unstable", "resurrected", "unreadable".
    name: str
    text: str


def after(operation, state, is_target, source):
    """The states that the operation may make of `state`. A rename makes of its target `source`."""
    kind = operation.kind
    if kind in ("put", "replace"):
        blocks = -(-operation.size // BLOCK)
        return {State(operation.size, (operation.version,) * blocks)}
    if is_target:
        return {s for s in source if s is not ABSENT}
    if kind in ("unlink", "rename") or state is ABSENT:
        return {ABSENT}
    if kind == "truncate":
        size = min(operation.size, state.size)
        return {State(size, state.blocks[: -(-size // BLOCK)])}
    blocks = list(state.blocks)
    first = len(blocks) if kind == "append" else operation.first
    blocks += [ZERO] * (first + operation.count - len(blocks))
    for index in range(first, first + operation.count):
        blocks[index] = operation.version
    return {State(max(state.size, (first + operation.count) * BLOCK), tuple(blocks))}


IN_PLACE = ("put", "overwrite", "append", "truncate")
WRITES = ("put", "replace", "overwrite", "append")


@dataclasses.dataclass(frozen=True)
class Possible:
    """What a name may hold. `torn`: also blocks of several of the states. `holes`: also zeroes."""

    states: frozenset = frozenset({ABSENT})
    torn: bool = False
    holes: bool = False

    def admits(self, state):
        return state in self.states or (self.torn and self._admits_torn(state))

    def _admits_torn(self, state):
        if state is ABSENT:
            return False
        present = [s for s in self.states if s is not ABSENT]
        if state.size > max((s.size for s in present), default=0):
            return False
        for index, version in enumerate(state.blocks):
            known = {s.blocks[index] for s in present if index < len(s.blocks)}
            if version in known or (version == ZERO and self.holes):
                continue
            if version == MIXED and len(known) > 1:
                continue
            return False
        return True

    def joined(self, step):
        """With what the step may have done, wholly or in part."""
        operation = step.operation
        states = set(self.states)
        for state in self.states:
            states |= after(operation, state, step.is_target, step.source)
        if operation.kind == "put":
            states.add(State(0, ()))
        in_place = operation.kind in IN_PLACE
        holes = self.holes or (in_place and operation.outcome != OK)
        return Possible(frozenset(states), self.torn or in_place, holes)

    def replaced(self, step):
        """With what the step has done."""
        operation = step.operation
        states = set()
        for state in self.states:
            states |= after(operation, state, step.is_target, step.source)
        whole = operation.kind not in ("overwrite", "append", "truncate")
        return Possible(frozenset(states), self.torn and not whole, self.holes and not whole)

    def ended(self, step):
        """With what the step has done or, as it failed, may have done."""
        if step.operation.outcome == OK:
            return self.replaced(step)
        if step.operation.outcome == ABSENT_ANSWER and ABSENT in self.states:
            return Possible()
        return self.joined(step)


@dataclasses.dataclass(frozen=True)
class Step:
    """An operation, as one of its names sees it."""

    operation: Operation
    is_target: bool
    source: frozenset  # What the renamed file may have been.


class NameHistory:
    """The operations of one name in order, and what it may hold after them."""

    def __init__(self):
        self.steps = []
        self.now = Possible()
        # When bytes of what it holds were written last, as far as that was acknowledged. A rename
        # takes them along, and a cut writes none.
        self.written = 0.0

    def add(self, step):
        self.steps.append(step)
        self.now = self.now.ended(step)

    def between(self, begin, end):
        """What may be seen by who opened at `begin` and was done at `end`."""
        possible = Possible()
        for step in self.steps:
            if step.operation.begin > end:
                break
            is_over = step.operation.certain_from <= begin
            possible = possible.ended(step) if is_over else possible.joined(step)
        return possible

    def cuts(self, begin, end):
        """Whether the file was being cut meanwhile."""
        return any(
            step.operation.kind in ("put", "truncate")
            and step.operation.begin <= end
            and step.operation.certain_from >= begin
            for step in self.steps
        )

    def quiet(self, begin, end):
        """Whether nothing of this name was under way then, and how many operations were before."""
        before = 0
        for step in self.steps:
            if step.operation.begin <= end and step.operation.certain_from >= begin:
                return False, before
            before += step.operation.end < begin
        return True, before


class History:
    """All names of a journal."""

    def __init__(self, operations):
        self.names = {}
        self.violations = []
        for operation in sorted(operations, key=lambda o: o.begin):
            self._add(operation)

    def of(self, name):
        return self.names.setdefault(name, NameHistory())

    def _add(self, operation):
        history = self.of(operation.name)
        source = history.now.states
        if operation.outcome == ABSENT_ANSWER and ABSENT not in source:
            if operation.kind not in ("put", "replace"):
                self._complain("lost", operation.name, f"is not there for: {operation}")
        if operation.kind == "rename":
            self.of(operation.target).add(Step(operation, True, source))
            if operation.outcome == OK:
                self.of(operation.target).written = history.written
        elif operation.outcome == OK and operation.kind in WRITES:
            history.written = operation.stored or operation.end
        history.add(Step(operation, False, source))

    def _complain(self, kind, name, text):
        self.violations.append(Violation(kind, name, text))

    def check(self, reads, *, excused=lambda name, read: False):
        """Adds what is wrong with the reads. excused: this final read may answer EIO."""
        last_seen = {}
        for read in sorted(reads, key=lambda r: r.begin):
            history = self.of(read.name)
            if read.outcome != OK:
                if read.final and not excused(read.name, read):
                    self._complain("unreadable", read.name, str(read))
                continue
            possible = history.between(read.begin, read.end)
            if not possible.admits(read.state):
                self._complain(self._kind_of(history, read, possible), read.name, str(read))
                continue
            quiet, number = history.quiet(read.begin, read.end)
            if not quiet:
                continue
            seen = last_seen.get(read.name)
            if seen and seen[0] == number and seen[1].state != read.state:
                text = f"{read}, but {seen[1]}, and nothing was done between"
                self._complain("unstable", read.name, text)
            last_seen[read.name] = (number, read)
        return self.violations

    def _kind_of(self, history, read, possible):
        if read.state is ABSENT:
            return "lost"
        if ZERO in read.state.blocks:
            return "cut" if history.cuts(read.begin, read.end) else "zeroes"
        if MIXED in read.state.blocks or FOREIGN in read.state.blocks:
            return "mixed"
        if possible.states == {ABSENT}:
            return "resurrected"
        before = [s for s in possible.states if s is not ABSENT]
        old = {version for s in before for version in s.blocks}
        mixture = any(v in old for v in read.state.blocks) and not set(read.state.blocks) <= old
        return "mixed" if mixture else "stale"

    def story(self, name):
        """The operations of a name, for people."""
        return [str(step.operation) for step in self.of(name).steps]


# ---- logs: many mounts append to one file


@dataclasses.dataclass
class Append:
    begin: float
    end: float
    name: str
    outcome: str
    record: int
    units: int  # Of 32 bytes.
    mount: str = ""

    def __str__(self):
        times = f"{self.begin:.3f}..{self.end:.3f}"
        return f"{times} {self.mount} append r{self.record} {self.units} units -> {self.outcome}"

    @property
    def certain_from(self):
        return self.end + (SETTLES_S if self.outcome in GONE else 0)


@dataclasses.dataclass
class LogRead:
    begin: float
    end: float
    name: str
    outcome: str
    pieces: tuple = ()  # (record, first unit, units) in order; record ZERO or FOREIGN else.
    mount: str = ""
    final: bool = False


def record_bytes(record, units):
    return b"".join(_word(record, index) for index in range(units))


def pieces_of(data):
    """The pieces of records in a log's bytes."""
    pieces = []
    for at in range(0, len(data), WORD.size):
        word = data[at : at + WORD.size]
        record, index = FOREIGN, 0
        if not any(word):
            record = ZERO
        elif len(word) == WORD.size:
            magic, _, record, index, _, _ = WORD.unpack(word)
            if magic != MAGIC or word != _word(record, index):
                record, index = FOREIGN, 0
        last = pieces[-1] if pieces else None
        if last and last[0] == record and (record <= 0 or index == last[1] + last[2]):
            last[2] += 1
        else:
            pieces.append([record, index, 1])
    return tuple(tuple(piece) for piece in pieces)


def check_log(appends, reads, *, excused=lambda name, read: False):
    """Violations of reads of one log."""
    found = []
    known = {append.record: append for append in appends}
    for read in sorted(reads, key=lambda r: r.begin):
        if read.outcome != OK:
            if read.final and not excused(read.name, read):
                found.append(Violation("unreadable", read.name, f"{read.mount}: {read.outcome}"))
            continue
        found += [
            Violation(kind, read.name, f"{read.begin:.3f} {read.mount}: {text}")
            for kind, text in _log_faults(known, appends, read)
        ]
    return found


def _log_faults(known, appends, read):
    failed = any(a.outcome != OK and a.begin <= read.end for a in appends)
    under_way = any(a.begin <= read.end and a.certain_from > read.begin for a in appends)
    whole = []
    for record, first, units in read.pieces:
        append = known.get(record)
        if record == ZERO or record == FOREIGN or append is None:
            if not failed and not (under_way and record == ZERO):
                yield "zeroes" if record == ZERO else "mixed", f"{units} units of {record}"
        elif append.begin > read.end:
            yield "mixed", f"has {append}, which begins later"
        elif (first, units) == (0, append.units):
            whole.append(record)
        elif append.outcome == OK and append.end <= read.begin:
            yield "mixed", f"units {first}+{units} of {append} stand alone"
    if len(whole) != len(set(whole)):
        twice = sorted({record for record in whole if whole.count(record) > 1})
        yield "mixed", f"records {twice} are there twice"
    place = {record: number for number, record in enumerate(whole)}
    latest_begin, of = float("-inf"), None
    for record in whole:  # Who was acknowledged before another began stands before it.
        append = known[record]
        if append.outcome == OK and append.end < latest_begin:
            yield "stale", f"{append} stands behind {of}, which began later"
        if append.outcome == OK and append.begin > latest_begin:
            latest_begin, of = append.begin, append
    for append in appends:
        if append.outcome == OK and append.end <= read.begin and append.record not in place:
            torn = any(record == append.record for record, _, _ in read.pieces)
            if not torn:
                yield "lost", f"has not {append}"
