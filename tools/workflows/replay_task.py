#!/usr/bin/env python3
"""One task of a recorded workflow: reads its inputs, computes, and writes its outputs.

    replay_task.py 0.25 --read raw/1:5000 --write made/2:600

Every byte that is read is compared with what must have been written: the bytes of a file follow
from its path alone. Exit code 1 if they differ, with one sentence.
"""

import argparse
import hashlib
import sys
import time

BLOCK_BYTES = 1 << 16
MARK_BYTES = 16


def pattern_of(path):
    """What each block of the file holds behind its mark."""
    return hashlib.shake_128(path.encode()).digest(BLOCK_BYTES - MARK_BYTES)


def blocks_of(path, size):
    """The file's content, block by block: each begins with its number."""
    pattern = pattern_of(path)
    for number, begin in enumerate(range(0, size, BLOCK_BYTES)):
        mark = number.to_bytes(MARK_BYTES, "big")
        yield (mark + pattern)[: size - begin]


def write(path, size):
    with open(path, "wb", buffering=0) as file:
        for block in blocks_of(path, size):
            file.write(block)


def check(path, size):
    with open(path, "rb", buffering=0) as file:
        for number, right in enumerate(blocks_of(path, size)):
            if file.read(BLOCK_BYTES) != right:
                sys.exit(f"{path}: the block at byte {number * BLOCK_BYTES} is not what was written")
        if file.read(1):
            sys.exit(f"{path} is longer than the {size} bytes that were written")


def compute(seconds):
    """Uses so many seconds of a processor."""
    value = 1
    while time.process_time() < seconds:
        for _ in range(1000):
            value = value * 48271 % 2147483647


def sized(word):
    path, _, size = word.rpartition(":")
    return path, int(size)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, help="of a processor, with those of reading")
    parser.add_argument("--read", type=sized, nargs="*", default=[], metavar="PATH:BYTES")
    parser.add_argument("--write", type=sized, nargs="*", default=[], metavar="PATH:BYTES")
    arguments = parser.parse_args()
    for path, size in arguments.read:
        check(path, size)
    compute(arguments.seconds)
    for path, size in arguments.write:
        write(path, size)


if __name__ == "__main__":
    main()
