"""A program that creates a file which another host has made a moment before gets what the file's mode allows.

Root makes files of mode 0600 on one host, in a directory that everybody may use. On the other a user opens the same
name again and again to create and empty it. He must never get root's file, nor empty it.
"""

import argparse
import errno
import multiprocessing
import os
import pathlib
import time

import cluster

USER = 65534
SECRET = b"root's"


def intrude(name, until, results):
    """As the user: opens the name until the time is over. Counts answers."""
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    answers = {}
    while time.monotonic() < until:
        try:
            fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
            answer = "own" if os.fstat(fd).st_uid == USER else "root's"
            os.close(fd)
            if answer == "own":
                os.unlink(name)
        except OSError as failure:
            answer = errno.errorcode.get(failure.errno, str(failure))
        answers[answer] = answers.get(answer, 0) + 1
    results.put(answers)


def test(arguments):
    with cluster.Cluster(arguments.bin, 2, flags=["--allow-other"]) as store:
        here, there = (pathlib.Path(store.mount(host)) / "shared" for host in ("h1", "h2"))
        here.mkdir()
        here.chmod(0o777)
        results = multiprocessing.SimpleQueue()
        until = time.monotonic() + arguments.seconds
        user = multiprocessing.get_context("fork").Process(target=intrude, args=(here / "x", until, results))
        user.start()
        emptied = made = 0
        while time.monotonic() < until:
            source = there / f"made-{made}"
            made += 1
            source.write_bytes(SECRET)
            source.chmod(0o600)
            try:
                os.link(source, there / "x")
            except FileExistsError:
                source.unlink()
                continue
            time.sleep(0.003)
            emptied += source.read_bytes() != SECRET
            (there / "x").unlink(missing_ok=True)
            source.unlink()
        answers = results.get()
        user.join(20)
        print(f"{made} files, answers to the user: {answers}")
        cluster.check(emptied == 0, f"the user has emptied {emptied} of root's files")
        cluster.check("root's" not in answers, f"the user has opened root's files: {answers}")
        cluster.check(answers.get("EACCES", 0) > 0, f"the two never met: {answers}")
        others = set(answers) - {"own", "EACCES", "ENOENT", "EPERM", "ESTALE"}
        cluster.check(not others, f"unexpected answers: {answers}")


def add_arguments(parser: argparse.ArgumentParser):
    parser.add_argument("--seconds", type=float, default=10)


if __name__ == "__main__":
    cluster.main(test, limit_s=120, description=__doc__, add_arguments=add_arguments)
