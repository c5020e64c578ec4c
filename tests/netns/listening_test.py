"""Who listens on the network reads files' bytes, and with --bulk-tls does not.

A program in the reader's host sees every packet while a file is written and read by mounts of two
hosts: first of a cluster as it is, which shows that the program can see what there is to see, then
after the manager was started again with --bulk-tls: nodes and mounts that run already begin to
encrypt, without an error and with the same bytes. Copies between nodes are encrypted as well.
"""

import os
import socket
import subprocess
import sys

import cluster
from consistency_test import get, put

FILE_BYTES = 2 << 20
MARK = b"in-clear-on-the-wire"
ETH_P_ALL = 3


def listen():
    """Counts MARK in all packets of this namespace until standard input ends."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    packets.settimeout(0.2)
    os.set_blocking(0, False)
    print("ready", flush=True)
    marks, seen = 0, 0
    while True:
        try:
            packet = packets.recv(1 << 17)
            marks += packet.count(MARK)
            seen += len(packet)
            continue
        except TimeoutError:
            pass
        if sys.stdin.buffer.read() == b"":
            print(marks, seen, flush=True)
            return


def heard(store, host, action):
    """How often MARK was heard at host during the action, and how many bytes of packets."""
    words = ["ip", "netns", "exec", store.host(host)["net_namespace"]]
    words += [sys.executable, __file__, "--listen"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as listener:
        cluster.check(listener.stdout.readline() == b"ready\n", "nobody listens")
        action()
        listener.stdin.close()
        marks, seen = map(int, listener.stdout.readline().split())
    return marks, seen


def data_of(number):
    line = MARK + b" %06d " % number
    return (line * (FILE_BYTES // len(line) + 1))[:FILE_BYTES]


def write_and_read(store, directory, name, data):
    """Written by h2, which has the bytes; by h1, over the network; and read by h1."""

    def action():
        put(f"{directory}/{name}", data)
        seen = get(f"{store.mount('h1')}/placed/{name}")
        cluster.check(seen == data, f"{name} is not what was written")
        far = f"{store.mount('h1')}/placed/{name}.far"
        os.close(os.open(far, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        cluster.set_hint(far, "placement", "local")
        put(far, data)
        cluster.check_location(far, "h1")
        seen = get(f"{directory}/{name}.far")
        cluster.check(seen == data, f"{name}.far is not what was written")

    return action


def copied(store, directory, name, data):
    def action():
        path = f"{directory}/{name}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        cluster.set_hint(path, "replicas", "2")
        put(path, data)

        def valid():
            return b'"state":"valid"' in os.getxattr(path, "user.mosa.layout")

        cluster.wait_until(valid, 60, "the copy of a file")

    return action


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store:
        directory = cluster.placed_directory(f"{store.mount('h2')}/placed", "local")
        clear = heard(store, "h1", write_and_read(store, directory, "clear", data_of(1)))
        print(f"in clear: {clear[0]} marks in {clear[1]} bytes of packets")
        cluster.check(clear[0] > 1000, f"the listener heard only {clear[0]} marks")

        command = store.kill("manager", "h0")
        store.start("manager", "h0", [*command, "--bulk-tls"])
        first = data_of(2)
        write_and_read(store, directory, "between", first)()
        closed = heard(store, "h1", write_and_read(store, directory, "closed", data_of(3)))
        print(f"encrypted: {closed[0]} marks in {closed[1]} bytes of packets")
        cluster.check(closed[1] > FILE_BYTES, "nothing crossed the network")
        cluster.check(closed[0] == 0, f"the listener heard {closed[0]} marks")
        copies = heard(store, "h1", copied(store, directory, "copied", data_of(4)))
        print(f"a copy, encrypted: {copies[0]} marks in {copies[1]} bytes of packets")
        cluster.check(copies[1] > FILE_BYTES, "no copy crossed the network")
        cluster.check(copies[0] == 0, f"the listener heard {copies[0]} marks of a copy")
        for name in ("clear", "between", "closed"):
            cluster.check(len(get(f"{store.mount('h1')}/placed/{name}")) == FILE_BYTES, name)


if __name__ == "__main__":
    if "--listen" in sys.argv:
        listen()
    else:
        cluster.main(test, description=__doc__)
