"""The checker of journals: what it must accept, and what it must find. Run by pytest."""

import pytest

from history import (
    ABSENT,
    BLOCK,
    FOREIGN,
    MIXED,
    OK,
    SETTLES_S,
    ZERO,
    Append,
    History,
    LogRead,
    Operation,
    Read,
    State,
    check_log,
    content,
    pieces_of,
    record_bytes,
    state_of,
)


def whole(version, blocks=2):
    return State(blocks * BLOCK, (version,) * blocks)


def put(begin, version, outcome=OK, kind="put", name="f", blocks=2):
    return Operation(
        begin, begin + 1, kind, name, outcome, version=version, size=blocks * BLOCK
    )


def overwrite(begin, version, first, count, outcome=OK):
    return Operation(begin, begin + 1, "overwrite", "f", outcome, "", version, 0, first, count)


def unlink(begin, outcome=OK, name="f"):
    return Operation(begin, begin + 1, "unlink", name, outcome)


def rename(begin, source, target, outcome=OK):
    return Operation(begin, begin + 1, "rename", source, outcome, target=target)


def read(begin, state, name="f", outcome=OK, final=False, length=0.5):
    return Read(begin, begin + length, name, outcome, state, final=final)


def found(operations, reads, **options):
    return [v.kind for v in History(operations).check(reads, **options)]


TORN = State(2 * BLOCK, (1, 2))

CASES = {
    # name: (operations, reads, what is found)
    "nothing was done": ([], [read(1, ABSENT)], []),
    "an acknowledged file is there": ([put(0, 1)], [read(2, whole(1))], []),
    "an acknowledged file is not there": ([put(0, 1)], [read(2, ABSENT)], ["lost"]),
    "a file under way may be there or not": (
        [put(0, 1)],
        [read(0.2, ABSENT, length=0.1), read(0.4, whole(1), length=0.1)],
        [],
    ),
    "a file is there before it is made": ([put(5, 1)], [read(2, whole(1))], ["resurrected"]),
    "the older version after the newer": (
        [put(0, 1), put(2, 2)],
        [read(4, whole(1))],
        ["stale"],
    ),
    "a read that overlaps sees either": (
        [put(0, 1), put(2, 2)],
        [read(1.5, whole(1), length=1), read(1.6, whole(2), length=1)],
        [],
    ),
    "blocks of two versions while it is written": (
        [put(0, 1), overwrite(2, 2, 1, 1)],
        [read(2.2, TORN, length=0.1)],
        [],
    ),
    "an overwrite is wholly there": ([put(0, 1), overwrite(2, 2, 1, 1)], [read(4, TORN)], []),
    "an overwrite is lost": ([put(0, 1), overwrite(2, 2, 1, 1)], [read(4, whole(1))], ["stale"]),
    "blocks of two versions at rest": ([put(0, 1), put(2, 2)], [read(4, TORN)], ["mixed"]),
    "a replaced file is never mixed": (
        [put(0, 1), put(2, 2, kind="replace")],
        [read(2.2, TORN, length=0.1)],
        ["stale"],
    ),
    "zeroes with success": ([put(0, 1)], [read(2, whole(ZERO))], ["zeroes"]),
    "zeroes where a write failed": (
        [put(0, 1), put(2, 2, "EIO", blocks=3)],
        [read(4, State(3 * BLOCK, (2, 2, ZERO)))],
        [],
    ),
    "foreign bytes": ([put(0, 1)], [read(2, whole(FOREIGN))], ["mixed"]),
    "a block of two versions": ([put(0, 1)], [read(2, whole(MIXED))], ["mixed"]),
    "a removed file is gone": ([put(0, 1), unlink(2)], [read(4, ABSENT)], []),
    "a removed file is back": ([put(0, 1), unlink(2)], [read(4, whole(1))], ["resurrected"]),
    "a removal that failed may have happened": (
        [put(0, 1), unlink(2, "ETIMEDOUT")],
        [read(4, ABSENT)],
        [],
    ),
    "a removal that failed may have not": (
        [put(0, 1), unlink(2, "ETIMEDOUT")],
        [read(4, whole(1))],
        [],
    ),
    "a removal that failed happens later": (
        [put(0, 1), unlink(2, "ETIMEDOUT")],
        [read(4, whole(1)), read(5, ABSENT)],
        ["unstable"],
    ),
    "a removal that failed takes a newer file": (
        [put(0, 1), unlink(2, "ETIMEDOUT"), put(4, 2)],
        [read(6, ABSENT)],
        ["lost"],
    ),
    "a removal whose mount died may happen soon": (
        [put(0, 1), unlink(2, "ENOTCONN")],
        [read(4, whole(1)), read(5, ABSENT)],
        [],
    ),
    "a removal whose mount died happens late": (
        [put(0, 1), unlink(2, "ENOTCONN")],
        [read(4 + SETTLES_S, whole(1)), read(5 + SETTLES_S, ABSENT)],
        ["unstable"],
    ),
    "a rename moves": (
        [put(0, 1), rename(2, "f", "g")],
        [read(4, ABSENT), read(4, whole(1), "g")],
        [],
    ),
    "the old name after a rename": (
        [put(0, 1), rename(2, "f", "g")],
        [read(4, whole(1))],
        ["resurrected"],
    ),
    "a rename replaces": (
        [put(0, 1), put(2, 2, name="g"), rename(4, "f", "g")],
        [read(6, whole(2), "g")],
        ["stale"],
    ),
    "two readers see different halves of a failed write": (
        [put(0, 1), overwrite(2, 2, 0, 2, "EIO")],
        [read(4, whole(1)), read(5, TORN)],
        ["unstable"],
    ),
    "a file that cannot be read in the end": (
        [put(0, 1)],
        [read(2, None, outcome="EIO", final=True)],
        ["unreadable"],
    ),
    "a file that cannot be read for a while": ([put(0, 1)], [read(2, None, outcome="EIO")], []),
    "an operation on what must be there says it is not": (
        [put(0, 1), unlink(2, "ENOENT")],
        [],
        ["lost"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_files(case):
    operations, reads, wanted = CASES[case]
    assert found(operations, reads) == wanted


def test_an_excused_file_may_answer_an_error_but_no_zeroes():
    excuse = {"excused": lambda name, seen: True}
    assert found([put(0, 1)], [read(2, None, outcome="EIO", final=True)], **excuse) == []
    assert found([put(0, 1)], [read(2, whole(ZERO), final=True)], **excuse) == ["zeroes"]


@pytest.mark.parametrize("size", (0, 1, 100, BLOCK, BLOCK + 1, 5 * BLOCK))
def test_bytes_name_their_version(size):
    seen = state_of(content(7, size))
    assert seen.size == size
    if size >= 32:
        assert set(seen.blocks[:1]) == {7}


def test_bytes_of_two_versions_are_told_apart():
    data = bytearray(content(7, 2 * BLOCK))
    data[BLOCK : BLOCK + 64] = content(8, 2 * BLOCK)[BLOCK : BLOCK + 64]
    assert state_of(bytes(data)).blocks == (7, MIXED)
    assert state_of(bytes(2 * BLOCK)).blocks == (ZERO, ZERO)
    assert state_of(b"x" * BLOCK).blocks == (FOREIGN,)
    assert state_of(content(7, BLOCK, first=1)).blocks == (MIXED,)  # A block of another place.


def append(begin, record, outcome=OK, units=3):
    return Append(begin, begin + 1, "log", outcome, record, units)


def log_read(begin, data, final=False):
    return LogRead(begin, begin + 0.5, "log", OK, pieces_of(data), final=final)


A, B = record_bytes(1, 3), record_bytes(2, 3)

LOGS = {
    "in order": ([append(0, 1), append(2, 2)], A + B, []),
    "at once, in any order": ([append(0, 1), append(0.5, 2)], B + A, []),
    "in the wrong order": ([append(0, 1), append(2, 2)], B + A, ["stale"]),
    "one is missing": ([append(0, 1), append(2, 2)], A, ["lost"]),
    "one is torn": ([append(0, 1), append(0.5, 2)], A[:32] + B + A[32:], ["mixed", "mixed"]),
    "one is there twice": ([append(0, 1)], A + A, ["mixed"]),
    "one that failed is there": ([append(0, 1, "EIO")], A, []),
    "one that failed is torn": ([append(0, 1, "EIO")], A[:32], []),
    "one that failed is there twice": ([append(0, 1, "EIO")], A + A, ["mixed"]),
    "zeroes": ([append(0, 1)], A + bytes(32), ["zeroes"]),
}


@pytest.mark.parametrize("case", LOGS)
def test_logs(case):
    appends, data, wanted = LOGS[case]
    assert [v.kind for v in check_log(appends, [log_read(4, data)])] == wanted


def test_a_log_is_not_ahead_of_its_time():
    assert [v.kind for v in check_log([append(5, 1)], [log_read(1, A)])] == ["mixed"]


def test_a_rename_takes_the_age_of_the_bytes_along():
    history = History([put(0, 1, name="a"), rename(5, "a", "b"), put(9, 2, outcome="EIO", name="b")])
    assert history.of("b").written == 1
    history = History([put(0, 1, name="a"), rename(5, "a", "b"), put(9, 2, name="b")])
    assert history.of("b").written == 10


def test_zeroes_beside_a_cut_are_told_from_zeroes():
    cut = State(2 * BLOCK, (1, ZERO))
    shorter = Operation(5, 6, "truncate", "f", OK, size=BLOCK)
    assert found([put(0, 1), shorter], [read(5.2, cut)]) == ["cut"]
    assert found([put(0, 1), shorter], [read(2, cut)]) == ["zeroes"]
    assert found([put(0, 1), shorter], [read(7, cut)]) == ["zeroes"]
