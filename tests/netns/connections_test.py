"""Silent connections to a storage node's port shut nobody out.

From another host come 1,100 connections that say nothing, twice what the node keeps of such in all,
and are made again for as long as the test runs; others stop in the middle of their hello, and others
send bytes that are none. Meanwhile mounts of other hosts, one of which has not been connected to
the node before, read and write what lies there: without an error, and in a time that is at most
twice what it takes without the flood. The node keeps few threads and a bounded amount of memory.
"""

import argparse
import os
import pathlib
import random
import statistics
import subprocess
import sys
import threading
import time

import cluster
from bulk_peer import hello, silent_connections
from consistency_test import get, put

FLOOD = 1_100
ROUNDS = 25
FILE_BYTES = 4 << 20
# A loaded machine's reads vary; what is too slow here is what waits for anybody.
SLACK_S = 0.25


def flood(arguments):
    """Runs on another host until its standard input ends."""
    host, _, port = arguments.flood.rpartition(":")
    address = host, int(port)
    begun = hello(1, 0, os.urandom(16))
    print("ready", flush=True)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    choose = random.Random(1)
    while not over.is_set():
        held = silent_connections(address, FLOOD)
        time.sleep(0.2)
        for connection in held[::10]:
            try:
                connection.send(choose.choice([begun, begun[:20], os.urandom(300)]))
            except OSError:
                pass  # Closed already.
        over.wait(1)
        for connection in held:
            connection.close()


def times_of(store, directory):
    """The median times of a read by a mount of another host, and of a write and a close."""
    reads, writes = [], []
    for number in range(ROUNDS):
        data = os.urandom(FILE_BYTES)
        path = f"{directory}/file{number}"
        begin = time.monotonic()
        put(path, data)
        writes.append(time.monotonic() - begin)
        other = f"{store.mount('h1')}/placed/{os.path.basename(path)}"
        begin = time.monotonic()
        seen = get(other)
        reads.append(time.monotonic() - begin)
        cluster.check(seen == data, f"{other} is not what was written")
        os.unlink(path)
    return statistics.median(reads), statistics.median(writes)


def threads_and_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in status)
    return int(fields["Threads"]), int(fields["VmRSS"].split()[0]) << 10




def test(arguments):
    with cluster.Cluster(arguments.bin, 3) as store:
        # Bytes lie with h2; h1 reads them from there.
        directory = cluster.placed_directory(f"{store.mount('h2')}/placed", "local")
        command = store.command("storage", "h2")
        node = command[command.index("--listen") + 1]
        pid = store.pid("storage", "h2")
        quiet = times_of(store, directory)
        put(f"{directory}/kept", os.urandom(FILE_BYTES))

        words = ["ip", "netns", "exec", store.host("h3")["net_namespace"]]
        words += [sys.executable, __file__, "--flood", node]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
            cluster.check(stranger.stdout.readline() == b"ready\n", "the flood did not begin")
            time.sleep(2)
            flooded = times_of(store, directory)
            threads, memory = threads_and_bytes(pid)
            # A mount that has had no connection to the node so far.
            begin = time.monotonic()
            get(f"{store.mount('h3')}/placed/kept")
            newcomer = time.monotonic() - begin
            stranger.stdin.close()
            stranger.wait(timeout=20)
        rows = [
            ("read 4 MiB", f"{quiet[0] * 1e3:.1f} ms", f"{flooded[0] * 1e3:.1f} ms"),
            ("write 4 MiB", f"{quiet[1] * 1e3:.1f} ms", f"{flooded[1] * 1e3:.1f} ms"),
            ("first read by a mount", "", f"{newcomer * 1e3:.1f} ms"),
            ("threads", "", threads),
            ("resident", "", f"{memory >> 20} MiB"),
        ]
        cluster.print_table(("", "quiet", f"{FLOOD} silent connections"), rows)
        for before, during, what in zip(quiet, flooded, ("read", "write")):
            cluster.check(
                during < 2 * before + SLACK_S, f"{what}: {during:.3f} s, {before:.3f} s without"
            )
        cluster.check(newcomer < 5, f"a mount's first read took {newcomer:.1f} s")
        cluster.check(threads < 150, f"the node has {threads} threads")
        cluster.check(memory < 300 << 20, f"the node has {memory >> 20} MiB")
        cluster.check(cluster.start_ticks(pid), "the node is dead")


if __name__ == "__main__":
    if "--flood" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--flood", required=True)
        flood(parser.parse_args())
    else:
        cluster.main(test, description=__doc__)
