#!/usr/bin/env python3
"""One task of the modFTDock-shaped workflow: checks every byte of what it reads, computes, writes.

    modftdock_task.py --read protein.db:75000000 ligands/3:100000 --write docked/3:4000000 --seconds
    0.2
 What belongs at each place of a file follows from the file's name alone, so that a byte which is
lost, stale, or at another place or in another file is noticed by the task that reads it.
"""

import argparse
import random
import sys
import time

BLOCK_BYTES = 1 << 20


def blocks(name, size):
    """The file's bytes, block by block."""
    for at in range(0, size, BLOCK_BYTES):
        yield at, random.Random(f"{name}:{at}").randbytes(min(BLOCK_BYTES, size - at))


def write(path, size):
    with open(path, "wb") as file:
        for _, block in blocks(path, size):
            file.write(block)


def check(path, size):
    with open(path, "rb") as file:
        for at, block in blocks(path, size):
            found = file.read(len(block))
            if found != block:
                wrong = next(
                    (i for i, (a, b) in enumerate(zip(found, block)) if a != b), len(found)
                )
                sys.exit(f"modftdock: {path} is wrong at byte {at + wrong} of {size}")
        if file.read(1):
            sys.exit(f"modftdock: {path} is longer than {size} bytes")


def compute(seconds):
    """Keeps a processor busy."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--read", nargs="*", default=[], metavar="FILE:BYTES")
    parser.add_argument("--write", nargs="*", default=[], metavar="FILE:BYTES")
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="of computing, between reading and writing"
    )
    arguments = parser.parse_args()
    for word in arguments.read:
        path, _, size = word.rpartition(":")
        check(path, int(size))
    compute(arguments.seconds)
    for word in arguments.write:
        path, _, size = word.rpartition(":")
        write(path, int(size))


if __name__ == "__main__":
    main()
