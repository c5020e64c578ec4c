"""Residence times: every daemon counts the requests that it is known to have served, under the right
class and peer; the difference of two answers is what came between them; who is gone is named.

Three hosts. Counts are compared, and times only where one contains the other.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import urllib.request

import cluster

MIB = 1 << 20
FILE_MIB = 16
METRICS_PORTS = {"storage": 9464, "mount": 9465, "manager": 9466}
FILES = 20


def ask(store, *words):
    """What `mosa residence` answers, with peers by name."""
    answer = json.loads(store.tell("residence", "--json", *words))
    for one in answer["daemons"]:
        for row in one["requests"]:
            row["peer"] = answer["names"].get(row["peer"], row["peer"])
    return answer


def daemon(answer, component, host):
    found = [d for d in answer["daemons"] if d["component"] == component and d["host"] == host]
    cluster.check(len(found) == 1, f"{component} of {host}: {len(found)} of them")
    return found[0]


def rows(answer, component, host, name):
    """The rows of a class, by peer."""
    requests = daemon(answer, component, host)["requests"]
    return {row["peer"]: row for row in requests if row["class"] == name}


def count(answer, component, host, name):
    return sum(row["count"] for row in rows(answer, component, host, name).values())


def check_row(row):
    """What holds for every row, whatever it is of."""
    cluster.check(row["count"] == sum(n for _, n in row["buckets"]) > 0, f"counts: {row}")
    order = [row["p50_us"], row["p90_us"], row["p99_us"], row["max_us"]]
    cluster.check(order == sorted(order) and 0 <= row["mean_us"] <= row["max_us"], f"order: {row}")
    cluster.check(row["sum_ns"] <= row["max_ns"] * row["count"], f"the sum is too large: {row}")


def write_on_h1_read_on_h2(store, name):
    """A file that lies on h1 alone is read by h2, and rewritten by it: both over the network."""
    own = cluster.placed_directory(f"{store.mount('h1')}/{name}", "node:h1")
    data = os.urandom(FILE_MIB * MIB)
    with open(f"{own}/large", "wb") as file:
        file.write(data)
    cluster.check_location(f"{own}/large", "h1")
    there = f"{store.mount('h2')}/{name}"
    with open(f"{there}/large", "rb") as file:
        cluster.check(file.read() == data, "h2 reads something else")
    with open(f"{there}/from-h2", "wb") as file:
        file.write(data)
    for i in range(FILES):
        with open(f"{there}/small-{i}", "wb") as file:
            file.write(b"x" * 1000)
        os.stat(f"{own}/small-{i}")
    os.stat(f"{store.mount('h3')}/{name}/large")


def is_settled(answer):
    """A daemon counts a request when it is through with it, which may be after who asked goes on."""
    parts_are_whole = all(
        count(answer, "storage", "h1", name) == count(answer, "storage", "h1", f"{name}.object")
        for name in ("read", "write")
    )
    return (
        parts_are_whole
        and count(answer, "mount", "h2", "fuse.create") >= FILES + 1
        and count(answer, "mount", "h2", "fuse.release") >= FILES + 2
    )


def ask_until(store, condition, what, *words):
    """The first answer for which condition(answer) holds."""

    def look():
        answer = ask(store, *words)
        return condition(answer) and answer

    return cluster.wait_until(look, 30, what)


def check_counts(answer):
    for one in answer["daemons"]:
        cluster.check(one["failure"] == "" and one["requests"], f"nothing of {one}")
        for row in one["requests"]:
            check_row(row)
    who = [(d["component"], d["host"]) for d in answer["daemons"]]
    hosts = ["h1", "h2", "h3"]
    cluster.check(
        who == [("manager", "-"), *[(kind, h) for kind in ("storage", "mount") for h in hosts]],
        f"daemons: {who}",
    )
    # The kernel's requests at h2, and what these became.
    cluster.check(count(answer, "mount", "h2", "fuse.create") == FILES + 1, "creates at h2")
    for name in ("fuse.read", "fuse.write", "fuse.flush"):
        cluster.check(count(answer, "mount", "h2", name) > 0, f"no {name} at h2")
    # Bytes went from h2's mount to h1's node, and nowhere else, and both ends say so.
    for name in ("read", "write"):
        asked = rows(answer, "mount", "h2", f"node.{name}")
        cluster.check(list(asked) == ["h1"], f"h2 asked for {name} of {list(asked)}")
        served = rows(answer, "storage", "h1", name)
        cluster.check("h2" in served, f"h1 served a {name} of {list(served)}")
        parts = rows(answer, "storage", "h1", f"{name}.object")[""]
        whole = sum(row["count"] for row in served.values())
        cluster.check(parts["count"] == whole, f"{name}: {parts['count']} of {whole} with a part")
        total = sum(row["sum_ns"] for row in served.values())
        cluster.check(parts["sum_ns"] <= total, f"{name}: a part takes longer than the whole")
        cluster.check(not rows(answer, "storage", "h3", name), f"h3 served a {name}")
    connected = rows(answer, "mount", "h2", "node.connect")
    cluster.check(list(connected) == ["h1"], f"h2 connected to {list(connected)}")
    check_manager(answer)


def check_lost_packets(store):
    """Where a link drops what it has no room for, the exchanges in which that happened are counted, and no others: of who sends
    by what is sent again, of who receives by what overtakes what was lost."""
    cluster.placed_directory(f"{store.mount('h1')}/lossy", "node:h1")

    def resent():
        answer = ask(store)
        return {(host, peer): row["count"] for host in store.hosts for peer, row in rows(answer, "mount", host, "node.resent").items()}

    def write():
        pathlib.Path(store.mount("h2"), "lossy", "large").write_bytes(os.urandom(FILE_MIB * MIB))

    def read():
        pathlib.Path(store.mount("h3"), "lossy", "large").read_bytes()

    # Who waits is h2, then h3; what is dropped is on its way to h1, then to h3.
    for action, pair, to in ((write, ("h2", "h1"), "h1"), (read, ("h3", "h1"), "h3")):
        device, before = store.host(to)["link"], resent()
        subprocess.run(["tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", "100mbit", "burst", "16kb", "limit", "20kb"], check=True)
        try:
            action()
        finally:
            subprocess.run(["tc", "qdisc", "delete", "dev", device, "root"], check=True)
        grown = {each: count for each, count in resent().items() if count > before.get(each, 0)}
        cluster.check(list(grown) == [pair], f"{pair} alone loses packets, and what grew is {grown}")


def check_manager(answer):
    """What mounts have sent the manager has answered, and decided in a part of the time."""
    requests = daemon(answer, "manager", "-")["requests"]
    served = {row["class"]: row for row in requests}
    cluster.check(served["log"]["count"] > 0, "the manager wrote no log")
    for name in ("open", "bind+", "make+", "commit"):
        sent = [rows(answer, "mount", host, f"manager.{name}") for host in ("h1", "h2", "h3")]
        sent = [row for by_peer in sent for row in by_peer.values()]
        if name not in served:
            cluster.check(not sent, f"{name} was sent and not served")
            continue
        # One that is under way while they are asked may be in one of the two alone, and one that
        # a mount has repeated after its stream broke was served twice.
        cluster.check(
            served[name]["count"] >= sum(row["count"] for row in sent) - 2,
            f"{name}: {served[name]} served, {sent} sent",
        )
        cluster.check(
            served[f"{name}.core"]["sum_ns"] <= served[name]["sum_ns"],
            f"{name}: the decision takes longer than the answer",
        )
    cluster.check("make" in served or "make+" in served, f"nobody made a file: {list(served)}")


def check_difference(store, directory):
    before = directory / "before.json"
    before.write_text(store.tell("residence", "--json"))
    there = f"{store.mount('h3')}/since"
    os.mkdir(there)
    for i in range(FILES):
        with open(f"{there}/{i}", "wb") as file:
            file.write(b"y" * 1000)
    since = ask_until(
        store,
        lambda answer: count(answer, "mount", "h3", "fuse.create") >= FILES,
        "creates since then",
        "--since",
        str(before),
    )
    cluster.check(count(since, "mount", "h3", "fuse.create") == FILES, "creates since then")
    cluster.check(count(since, "mount", "h2", "fuse.create") == 0, "h2 made files since then")
    cluster.check(not any(d["since_start"] for d in since["daemons"]), "a daemon is new")
    text = store.tell("residence", "--since", str(before), "--top", "5")
    lines = [line.split("\t") for line in text.splitlines()]
    cluster.check(lines[0][:3] == ["COMPONENT", "HOST", "CLASS"], f"table: {lines[0]}")
    cluster.check(len(lines) == 6, f"{len(lines) - 1} rows of --top 5")
    return before


def check_gone(store, before):
    """A storage node that was killed is named, the others answer; one started again counts anew."""
    command = store.kill("storage", "h3")
    words = [str(store.binaries / "mosa"), "residence", "--json", "--since", str(before)]
    words += ["--name", store.name, "--dir", str(store.directory)]

    def look():
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        cluster.check(done.returncode == 0, f"residence: {done.stderr}")
        return done

    def alone_is(what):
        """Of h3's storage node this is said, and nothing of others, once all have been in time."""

        def is_said():
            done = look()
            said = f"mosa: the storage of host h3 is {what}: " in done.stderr
            return said and done.stderr.count("\n") == 1 and json.loads(done.stdout)

        return cluster.wait_until(is_said, 60, f"h3 alone is {what}")

    answer = alone_is("left out")
    cluster.check(not daemon(answer, "storage", "h3")["requests"], "h3 has rows")
    cluster.check(daemon(answer, "storage", "h1")["failure"] == "", "h1 is left out too")
    store.start("storage", "h3", command)
    cluster.check(daemon(alone_is("new"), "storage", "h3")["since_start"], "h3 is not new")


SAMPLE = re.compile(r'([a-z0-9_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\})? ([0-9.e+-]+)')


def scrape(store, kind, name):
    """A daemon started again with --metrics: its samples, (metric, labels) -> value."""
    address = f"{store.host(name)['address']}:{METRICS_PORTS[kind]}"
    command = store.kill(kind, name)
    store.start(kind, name, [*command, "--metrics", address])
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        cluster.check(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), kind)
        lines = answer.read().decode().splitlines()
    samples = {}
    for line in lines:
        if line.startswith("# "):
            continue
        match = SAMPLE.fullmatch(line)
        cluster.check(match, f"no sample: {line}")
        labels = match[2] or ""
        cluster.check((match[1], labels) not in samples, f"twice: {line}")
        samples[match[1], labels] = float(match[3])
    component = f"mosa_{kind}"
    cluster.check((f"{component}_start_time_seconds", "") in samples, f"{kind}: no start time")
    for (metric, labels), value in samples.items():
        if metric != f"{component}_request_seconds_count":
            continue
        bucket = (f"{component}_request_seconds_bucket", f'{labels},le="+Inf"')
        cluster.check(value > 0 and samples[bucket] == value, f"{bucket}: {samples[bucket]}")
    return samples


def check_metrics(store):
    """Each daemon serves Prometheus what it has counted."""
    storage = scrape(store, "storage", "h3")
    cluster.check(0 < storage["mosa_storage_limit_bytes", ""], f"storage: {storage}")
    cluster.check(("mosa_storage_used_bytes", "") in storage, f"storage: {storage}")
    mount = scrape(store, "mount", "h3")
    cluster.check(mount["mosa_mount_bytes_read_remote_total", ""] == 0, f"mount: {mount}")
    scrape(store, "manager", "h0")


def check_refusals(store, directory):
    """What is no snapshot is one sentence and exit code 2."""
    for name, text in (("text", "hello"), ("list", "[]"), ("other", '{"cluster": 3}')):
        path = directory / name
        path.write_text(text)
        words = [str(store.binaries / "mosa"), "residence", "--since", str(path)]
        words += ["--name", store.name, "--dir", str(store.directory)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        cluster.check(done.returncode == 2, f"{name}: {done.returncode} {done.stderr}")
        cluster.check(
            done.stderr.startswith(f"mosa: --since {path}: ") and done.stderr.count("\n") == 1,
            f"{name}: {done.stderr}",
        )


WORKFLOW = """
tasks:
  - {id: write, command: seq 300000 > numbers, outputs: [numbers]}
  - {id: read, command: wc -l < numbers > count, inputs: [numbers], outputs: [count]}
"""


def check_run(store, directory):
    """The record of a run says what its requests took, without what came before it."""
    (directory / "w.yaml").write_text(WORKFLOW)
    record = directory / "w.json"
    words = ["run", str(directory / "w.yaml"), "--record", str(record)]

    def run_measured(attempt):
        """The record's part, if every daemon was in time."""
        store.tell(*words, "--workdir", f"run{attempt}")
        residence = json.loads(record.read_text())["residence"]
        daemons = residence.get("daemons", [{"failure": residence.get("failure")}])
        return all(one["failure"] == "" for one in daemons) and residence

    residence = next(filter(None, map(run_measured, range(10))), None)
    cluster.check(residence, f"no run was measured: {record.read_text()}")
    cluster.check(residence["rows_left_out"] == 0, "rows are left out")
    made = sum(count(residence, "mount", host, "fuse.create") for host in store.hosts)
    cluster.check(0 < made < FILES, f"{made} files were made during the run")
    for one in residence["daemons"]:
        cluster.check(not one["since_start"], f"of the run: {one}")


def check_run_without_manager(store, directory):
    """Without a manager to ask, or with another mount's, a run is what it is, and says so."""
    record = directory / "alone.json"
    # A mount that no manager knows under this name.
    elsewhere = directory / "elsewhere"
    elsewhere.symlink_to(store.mount("h1"))
    manager = {
        "MOSA_MANAGER": store.state["manager_address"],
        "MOSA_SECRET": f"{store.state['plan']['directory']}/secrets/admin.pem",
    }
    nobody = {k: v for k, v in os.environ.items() if not k.startswith("MOSA_")}
    for environment, why in ((nobody, "MOSA_MANAGER"), ({**nobody, **manager}, "has no mount at")):
        words = [str(store.binaries / "mosa"), "run", str(directory / "w.yaml")]
        words += ["--mount", str(elsewhere), "--workdir", "alone", "--record", str(record)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
        cluster.check(done.returncode == 0, f"a run without its manager: {done.stderr}")
        residence = json.loads(record.read_text())["residence"]
        cluster.check(why in residence.get("failure", ""), f"not {why}: {residence}")


def check_top(store):
    """One interval for a program; on a terminal again and again, until q or Ctrl-C."""
    view = json.loads(store.tell("top", "--once", "--json", "--interval", "200ms"))
    cluster.check([host["name"] for host in view["hosts"]] == store.hosts and view["seconds"] >= 0.2, f"{view}")
    cluster.check(not view["notes"] and all(host["node_limit_bytes"] > 0 for host in view["hosts"]), f"{view}")
    table = store.tell("top", "--once", "--interval", "100ms")
    cluster.check(all(f"\n{name}" in table for name in ("HOST", "COMPONENT", *store.hosts)) and "\033" not in table, table)
    rows = 24
    for end, code in ((b"q", 0), (b"\x03", 0), (b"\x1c", 128 + signal.SIGQUIT)):
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
        before = termios.tcgetattr(ours)
        # Its own session, whose terminal this is: else Ctrl-C is nobody's. When its first process ends, the terminal is reset.
        command = ["sh", "-c", 'trap : INT QUIT; was=$(stty -g); "$@"; code=$?; test "$was" = "$(stty -g)" || code=99; exit $code', "sh"]
        command += [str(store.binaries / "mosa"), "top", "--name", store.name, "--dir", str(store.directory), "--interval", "100ms"]
        process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, start_new_session=True,
                                   preexec_fn=lambda its=its: fcntl.ioctl(its, termios.TIOCSCTTY, 0))
        os.close(its)
        shown = b""
        while shown.count(b"q quits") < 3:
            cluster.check(select.select([ours], [], [], 30)[0], f"nothing is shown any more after {shown}")
            shown += os.read(ours, 4096)
        frame = shown.split(b"\033[H\033[J")[1]
        cluster.check(frame.count(b"\n") < rows and b"COMPONENT" in frame, f"the first lines are scrolled away: {frame}")
        cluster.check(termios.tcgetattr(ours)[3] != before[3], "keys come by the line")
        os.write(ours, end)
        # What nobody reads would hold it up.
        limit = time.monotonic() + 60
        with contextlib.suppress(OSError):
            while process.poll() is None and time.monotonic() < limit:
                if select.select([ours], [], [], 0.1)[0]:
                    os.read(ours, 4096)
        cluster.check(process.wait(30) == code, f"{end} ended it with {process.returncode} (99: the terminal is not as it was)")
        os.close(ours)


def test(arguments):
    with cluster.Cluster(arguments.bin, 3) as store, tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        write_on_h1_read_on_h2(store, "first")
        check_counts(ask_until(store, is_settled, "all requests are counted"))
        before = check_difference(store, directory)
        check_refusals(store, directory)
        check_top(store)
        check_lost_packets(store)
        check_run(store, directory)
        check_run_without_manager(store, directory)
        check_gone(store, before)
        check_metrics(store)


if __name__ == "__main__":
    cluster.main(test, limit_s=120, description=__doc__)
