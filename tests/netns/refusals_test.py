"""A storage node serves nobody without a capability, and no bytes that anybody sends end a daemon.

From another host's namespace, over the bulk plane's TCP port: requests without a capability, with
made-up ones, and with frames that are none; and by capability_probe, requests with a true capability
to read one file that want more, and with that capability when its time is over. None may give or
change a byte, and the mounts go on. Sockets, secret and directories are for their owner alone.
"""

import argparse
import os
import random
import socket
import struct
import sys

import cluster
from bulk_peer import field, frame_of, introduce, receive_frame
from consistency_test import get, put

INVALID_ARGUMENT, PERMISSION_DENIED, UNAUTHENTICATED = 3, 7, 16
ENDED = 99
REFUSED = (INVALID_ARGUMENT, PERMISSION_DENIED, UNAUTHENTICATED)
REQUESTS = {  # Field of BulkRequest, and its message's fields.
    "read": (4, {1: 0, 2: 65536}),
    "write": (5, {1: 0}),
    "truncate": (6, {1: 1}),
    "allocate": (7, {1: 3, 2: 0, 3: 65536}),
    "stat": (8, {}),
    "seek": (9, {1: 0, 2: 1}),
    "open_local": (11, {1: 1}),
    "finish_local_writes": (12, {}),
}


def frame(operation, file_id, capability, payload=b""):
    number, fields = REQUESTS[operation]
    body = b"".join(field(key, value) for key, value in fields.items())
    header = field(1, 1) + field(2, file_id)
    if capability is not None:
        header += field(3, capability)
    return frame_of(header + field(number, body), payload)


def ask(address, request, introduced=None):
    """(code, message, payload) of the reply; None if the connection was ended instead.

    introduced: (client, era, key, node's name) for a hello that comes first.
    """
    with socket.create_connection(address, timeout=10) as connection:
        answer = None
        if introduced:
            answer = introduce(connection, *introduced)
        if answer is None:
            connection.sendall(request)
            answer = receive_frame(connection)
        if answer is None:
            return None
        reply, payload = answer
        return reply.get(2, 0), reply.get(4, b"").decode(), payload


# ---- what a stranger does; runs in another host's namespace


def made_up_capabilities(file_id):
    choose = random.Random(1)
    form = struct.pack("<BQQQQQqB", 2, file_id, 1, 1, 1, 1, (1 << 63) - 1, 1)  # As the manager makes them.
    return {
        "a well-formed": form + choose.randbytes(32),
        "no": None,
        "an empty": b"",
        "a short": b"\x01",
        "a zero": bytes(64),
        "a random": choose.randbytes(82),
        "a huge": choose.randbytes(60_000),
    }


def try_requests(address, file_id):
    for what, capability in made_up_capabilities(file_id).items():
        for operation in REQUESTS:
            payload = b"stranger" if operation == "write" else b""
            try:
                reply = ask(address, frame(operation, file_id, capability, payload))
            except ConnectionResetError:
                reply = None
            if reply is None:  # Ended: refused as well, if less politely.
                continue
            code, message, data = reply
            name = f"{operation} with {what} capability"
            cluster.check(code in REFUSED, f"{name}: code {code} ({message})")
            cluster.check(not data, f"{name} got {len(data)} bytes")
            cluster.check(message, f"{name} was refused without a reason")


def send_junk(address, seed):
    choose = random.Random(seed)
    good = frame("read", 1, b"x")
    junk = [
        struct.pack("<II", 0xFFFFFFFF, 0),
        struct.pack("<II", 10, 0xFFFFFFFF) + bytes(10),
        struct.pack("<II", 0, 0),
        struct.pack("<II", 65536, 0) + bytes(65536),
        good[:5],
        good[:-1],
        b"GET / HTTP/1.1\r\n\r\n",
        *[choose.randbytes(choose.randint(1, 5000)) for _ in range(200)],
    ]
    for data in junk:
        try:
            with socket.create_connection(address, timeout=5) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(5)
                connection.recv(4096)
        except OSError:
            pass  # Any answer but death will do; whether it lives is looked at afterwards.


def stranger(arguments):
    node, manager = (
        (text.rpartition(":")[0], int(text.rpartition(":")[2])) for text in arguments.stranger[:2]
    )
    try_requests(node, int(arguments.stranger[2]))
    send_junk(node, 1)
    send_junk(manager, 2)
    idle = [socket.create_connection(node, timeout=10) for _ in range(100)]
    try_requests(node, int(arguments.stranger[2]))
    for connection in idle:
        connection.close()


# ---- the test


def check_modes(store):
    plan = store.state["plan"]
    secrets = f"{plan['directory']}/secrets"
    wanted = {f"{secrets}/{name}": 0o600 for name in os.listdir(secrets)}
    wanted |= {secrets: 0o700, plan["directory"]: 0o700}
    for host in plan["hosts"]:
        wanted[host["socket"]] = 0o600
        wanted[host["objects"]] = 0o700
    for path, mode in wanted.items():
        have = os.stat(path).st_mode & 0o777
        cluster.check(have == mode, f"{path} has mode {have:o}, must be {mode:o}")


def misuse_rights(store, probe):
    """A client with the right to read one file tries to do more."""
    data = {name: os.urandom(200_000) for name in ("first", "second")}
    for name, content in data.items():
        path = f"{store.mount('h2')}/{name}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        cluster.set_hint(path, "placement", "local")
        put(path, content)
        cluster.check_location(path, "h2")
    state = store.state
    flags = ["--manager", state["manager_address"], "--node", "h2"]
    flags += ["--secret", f"{state['plan']['directory']}/secrets/mount.pem"]
    tried = store.exec("h1", probe, *flags, *data)
    lines = dict(line.rpartition(" ")[::2] for line in tried.stdout.splitlines())
    print("\n".join(line for line in tried.stdout.splitlines() if "capability " not in line[:11]))
    cluster.check(tried.returncode == 0, f"capability_probe: {tried.stdout} {tried.stderr}")
    for name, content in data.items():
        seen = get(f"{store.mount('h2')}/{name}")
        cluster.check(seen == content, f"{name} is not the same any more")
    return tuple(lines[name] for name in ("capability", "client", "era", "bulk_key"))


def read_first(store, capability, client, era, key):
    """What h2's node answers in h1's namespace to a read of the file "first"."""
    node = store.command("storage", "h2")
    address = node[node.index("--listen") + 1]
    file_id = str(os.stat(f"{store.mount('h2')}/first").st_ino)
    words = ["--reader", address, file_id, capability, client, era, key]
    tried = store.exec("h1", sys.executable, __file__, *words)
    cluster.check(tried.returncode == 0, f"{tried.stdout[-2000:]}{tried.stderr[-2000:]}")
    code, _, message = tried.stdout.strip().partition(" ")
    return int(code), message


def overhear(store, capability, client, era, key):
    """A true capability in the hands of who is not its client."""
    for whose, other, other_key in (
        ("nobody's", client, "-"),
        ("of a client without its key", client, "00" * 32),
        ("of another client with the key", str(int(client) ^ 1), key),
    ):
        code, message = read_first(store, capability, other, era, other_key)
        print(f"right: read with a capability that was overheard, {whose}: {message}")
        cluster.check(code in (*REFUSED, ENDED), f"{whose}: {code} {message}")


def outlive(store, capability, client, era, key, library):
    """A true capability, when by the manager's clock its time is over."""
    code, message = read_first(store, capability, client, era, key)
    cluster.check(code == 0, f"a read with a true capability: {code} {message}")
    environment = {"LD_PRELOAD": library, "MOSA_TEST_SKEW_S": "700"}
    command = store.kill("manager", "h0")
    store.start("manager", "h0", command, environment=environment)
    code, message = cluster.wait_until(
        lambda: next(
            (a for a in [read_first(store, capability, client, era, key)] if a[0] != 0), None
        ),
        20,
        "the refusal of a capability that has expired",
    )
    print(f"right: read with an expired capability: {message}")
    cluster.check(code == PERMISSION_DENIED and "expired" in message, f"{code} {message}")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store:
        probe = misuse_rights(store, arguments.probe)
        directory = cluster.placed_directory(f"{store.mount('h2')}/private", "local")
        path = f"{directory}/file"
        data = os.urandom(300_000)
        put(path, data)
        cluster.check_location(path, "h2")
        command = store.command("storage", "h2")
        node = command[command.index("--listen") + 1]
        manager = store.state["manager_address"]
        tried = store.exec(
            "h1", sys.executable, __file__, "--stranger", node, manager, str(os.stat(path).st_ino)
        )
        cluster.check(tried.returncode == 0, f"{tried.stdout[-2000:]}{tried.stderr[-2000:]}")
        for host in store.hosts:
            seen = get(f"{store.mount(host)}/private/file")
            cluster.check(seen == data, f"the file is not the same any more on {host}")
        put(f"{directory}/after", data)
        cluster.check(get(f"{store.mount('h1')}/private/after") == data, "the store is damaged")
        for kind, host in (("manager", "h0"), ("storage", "h2")):
            cluster.check(cluster.start_ticks(store.pid(kind, host)), f"{kind} of {host} is dead")
        check_modes(store)
        overhear(store, *probe)
        outlive(store, *probe, arguments.skewed_clock)


def reader(arguments):
    host, _, port = arguments.reader[0].rpartition(":")
    file_id, capability = int(arguments.reader[1]), bytes.fromhex(arguments.reader[2])
    client, era, key = int(arguments.reader[3]), int(arguments.reader[4]), arguments.reader[5]
    introduced = None if key == "-" else (client, era, bytes.fromhex(key), "h2")
    try:
        reply = ask((host, int(port)), frame("read", file_id, capability), introduced)
    except AssertionError as mistrust:
        reply = UNAUTHENTICATED, mistrust
    print(*(reply or (ENDED, "the node ended the connection"))[:2])


def add_arguments(parser):
    parser.add_argument("--probe", required=True)
    parser.add_argument("--skewed-clock", required=True, help="the library to preload")


if __name__ == "__main__":
    if "--stranger" in sys.argv or "--reader" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--stranger", nargs=3)
        parser.add_argument("--reader", nargs=6)
        given = parser.parse_args()
        try:
            (stranger if given.stranger else reader)(given)
        except cluster.Failed as failure:
            sys.exit(str(failure))
    else:
        cluster.main(test, description=__doc__, add_arguments=add_arguments)
