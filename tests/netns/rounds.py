"""Random faults under a mixed load, and a check of everything that anybody read.

Each round: four hosts, writers, appenders and readers on all mounts, one fault at a random moment
on a random target; afterwards everything is read again on all mounts, and copies are compared on
the nodes themselves. history.py has the rules. A round is made from the seed and its number alone:
--only N repeats it. --state keeps the rounds that are done, so that a run that was ended goes on.

Exit codes: 0 good, 1 a check failed, 2 wrong arguments, 77 no clusters of namespaces here.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import cluster
import history
import rounds_faults
import rounds_load

HOSTS = 4
WRITERS = 4
APPENDERS = 3
WAIT_MAX_S = 15.0
SETTLE_S = 30.0
RAM = "256M"  # Less than kernels need to write files by themselves.
# A lazy copy may be missing for as long when its node is wiped.
COPYING_S = 20.0


class Round:
    """One round on a cluster that is up."""

    def __init__(self, arguments, store, number):
        self.store, self.number = store, number
        self.seed = f"{arguments.seed}:{number}"
        self.random = random.Random(self.seed)
        self.fault = rounds_faults.choose(
            number, arguments.seed, self.random, store.hosts, arguments.fault
        )
        self.before_s = self.random.uniform(0.5, 2.5)
        self.scratch = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm", prefix="mosa-rounds-"))
        self.directory = f"round-{number}"
        self.root_of = {host: f"{store.mount(host)}/{self.directory}" for host in store.hosts}
        self.complaints = []
        self.load, self.finals = [], []

    def run(self):
        """Returns the round's row, a dict. The cluster is healthy if there are no complaints."""
        begin = time.monotonic()
        rounds_load.make_directories(self.root_of[self.store.hosts[0]], WRITERS)
        self._start_load()
        time.sleep(self.before_s)
        rounds_faults.inflict(self.store, self.fault)
        time.sleep(1.5)
        self._end_load()
        for kind, host in rounds_faults.revive(self.store):
            self.complaints.append(("ended", f"{kind} of {host} has ended by itself"))
        if not self.complaints:
            self._read_everything()
        records = rounds_load.Records(
            p.journal_path for p in self.load + self.finals if p.journal_path.exists()
        )
        row = self._judge(records)
        if not self.complaints:
            self._compare_copies()
            row["complaints"] = self.complaints
        row["seconds"] = round(time.monotonic() - begin, 1)
        return row

    def _journal(self, name):
        return self.scratch / f"{name}.journal"

    def _start_load(self):
        hosts = self.store.hosts
        wanted = rounds_load.names(WRITERS) + [f"logs/log{k}" for k in range(6)]
        for number in range(WRITERS):
            home = hosts[number % len(hosts)]
            seed = f"{self.seed}:w{number}"
            journal = self._journal(f"writer{number}")
            self.load.append(
                rounds_load.Process(
                    rounds_load.run_writer, journal, self.root_of, home, number, seed
                )
            )
        for number in range(APPENDERS):
            home = hosts[number % len(hosts)]
            seed = f"{self.seed}:a{number}"
            journal = self._journal(f"appender{number}")
            self.load.append(
                rounds_load.Process(
                    rounds_load.run_appender, journal, self.root_of, home, number, seed
                )
            )
        for host in hosts:
            seed = f"{self.seed}:r{host}"
            journal = self._journal(f"reader-{host}")
            self.load.append(
                rounds_load.Process(
                    rounds_load.run_reader, journal, self.root_of[host], host, wanted, seed
                )
            )

    def _end_load(self):
        self._join(self.load, rounds_load.PATIENCE_S)

    def _join(self, processes, seconds):
        for process in processes:
            process.stopping.set() if processes is self.load else None
        limit = time.monotonic() + seconds
        for process in processes:
            if not process.finished(limit):
                name = process.journal_path.stem
                self.complaints.append(("hangs", f"{name} had not ended after {seconds} s"))

    def _read_everything(self):
        appended = set()
        for process in self.load:
            for line in process.journal_path.read_text().splitlines():
                if '"append"' in line:
                    appended.add(json.loads(line)["name"])
        wanted = rounds_load.names(WRITERS) + sorted(appended)
        limit = time.monotonic() + SETTLE_S
        for host in self.store.hosts:
            journal = self._journal(f"final-{host}")
            order = list(wanted)
            self.random.shuffle(order)
            self.finals.append(
                rounds_load.Process(
                    rounds_load.run_final_reader, journal, self.root_of[host], host, order, limit
                )
            )
        self._join(self.finals, SETTLE_S + 60)

    # ---- judging

    def _judge(self, records):
        past = history.History(records.operations)
        past.check(records.reads, excused=lambda name, read: self._excused(past, name))
        # docs/reference/limitations.md names this limit: zeroes beside another mount's cut. They are counted, and are no
        # complaint while it stands there.
        cut = sum(violation.kind == "cut" for violation in past.violations)
        found = [violation for violation in past.violations if violation.kind != "cut"]
        for name, reads in records.log_reads.items():
            appends = records.appends.get(name, [])
            found += history.check_log(appends, reads, excused=lambda *_: bool(self.fault.wiped))
        longest, of = self._longest_wait(records.waits)
        if longest > WAIT_MAX_S:
            self.complaints.append(("wait", f"{longest:.1f} s in {of}"))
        for violation in found:
            self.complaints.append((violation.kind, f"{violation.name}: {violation.text}"))
        for name in sorted({violation.name for violation in found})[:3]:
            self._tell_story(past, records, name)
        counts = {}
        for kind, _ in self.complaints:
            counts[kind] = counts.get(kind, 0) + 1
        if cut:
            counts["cut"] = cut
        return {
            "round": self.number,
            "seed": self.seed,
            "fault": self.fault.kind,
            "target": self.fault.target,
            "host": self.fault.host,
            "fault_s": round(self.fault.end - self.fault.begin, 2),
            "operations": len(records.operations) + sum(map(len, records.appends.values())),
            "reads": len(records.reads) + sum(map(len, records.log_reads.values())),
            "acknowledged_bytes": records.acknowledged_bytes,
            "errors": records.errors,
            "longest_wait_s": round(longest, 2),
            "longest_wait_of": of,
            "found": counts,
            "complaints": self.complaints,
        }

    def _excused(self, past, name):
        """Whether the only copy of a name may have been on the node that was wiped."""
        if not self.fault.wiped:
            return False
        last = past.of(name).written
        if last >= self.fault.end:
            return False
        group = name.split("/")[1]
        if group == "copied":
            # docs/reference/limitations.md names this limit: from the first byte that a writer
            # stores until its close has got the copies, only the first copy counts.
            steps = past.of(name).steps
            last = steps[-1].operation if steps else None
            return last is not None and last.outcome != history.OK and self.fault.overlaps(last)
        return group != "lazy" or last >= self.fault.begin - COPYING_S

    def _longest_wait(self, waits):
        longest, of = 0.0, ""
        for wait in waits:
            seconds = wait["end"] - wait["begin"]
            if wait["mount"] in self.fault.stopped_mounts:
                overlap = min(wait["end"], self.fault.end) - max(wait["begin"], self.fault.begin)
                seconds -= max(0.0, overlap)
            if seconds > longest:
                longest, of = seconds, f"{wait['call']} on {wait['mount']}"
        return longest, of

    def _tell_story(self, past, records, name):
        fault = f"{self.fault.begin:.3f}..{self.fault.end:.3f} {self.fault}"
        if name.startswith("logs/"):
            lines = [str(append) for append in records.appends.get(name, [])]
        else:
            lines = past.story(name)
            seen = [read for read in records.reads if read.name == name]
            lines += [str(read) for read in seen[-40:]]
        lines = sorted([fault, *lines], key=lambda line: float(line.split("..")[0]))
        print(f"--- the history of {name}", *lines[-60:], sep="\n  ")

    # ---- copies, on the nodes themselves

    def _compare_copies(self):
        root = self.root_of[self.store.hosts[0]]
        limit = time.monotonic() + SETTLE_S
        for name in rounds_load.names(WRITERS):
            if name.split("/")[1] not in ("lazy", "copied"):
                continue
            try:
                differ = self._copies_differ(f"{root}/{name}")
                while differ and time.monotonic() < limit:
                    time.sleep(0.3)
                    differ = self._copies_differ(f"{root}/{name}")
            except OSError:
                continue  # Not there, or lost: the reads have judged that.
            if differ:
                self.complaints.append(("copies differ", f"{name}: {differ}"))

    def _copies_differ(self, path):
        facts = os.stat(path)
        layout = json.loads(os.getxattr(path, "user.mosa.layout"))
        holders = [c["node"] for c in layout.get("copies", []) if c["state"] == "valid"]
        if layout["width"] != 1 or len(layout["segments"]) != 1 or not holders:
            return ""
        holders = sorted({*holders, *layout["nodes"]})
        held = {node: self._object(node, facts.st_ino, facts.st_size) for node in holders}
        if len(set(held.values())) <= 1:
            return ""
        return ", ".join(f"{n}: {history.text_of(_state(data))}" for n, data in held.items())

    def _object(self, node, inode, size):
        for path in pathlib.Path(self.store.host(node)["objects"]).glob(f"*/{inode:016x}"):
            return path.read_bytes()[:size].ljust(size, b"\0")
        return None


def _state(data):
    return history.ABSENT if data is None else history.state_of(data)


# ---- all rounds


class Clusters:
    """The cluster of the rounds, made anew where a round has left it unhealthy."""

    def __init__(self, arguments):
        self.arguments, self.stack, self.store = arguments, None, None

    def get(self):
        if self.store is None:
            self.stack = contextlib.ExitStack()
            store = cluster.Cluster(self.arguments.bin, HOSTS, ram=self.arguments.ram)
            self.stack.enter_context(store)
            try:
                data = rounds_faults.give_manager_a_disk(store)
                self.stack.callback(subprocess.run, ["umount", "-l", data], check=False)
                last = store.hosts[-1]  # One mount without passthrough.
                command = store.kill("mount", last)
                store.start("mount", last, [*command, "--no-passthrough"])
            except BaseException:
                self.stack.close()
                raise
            self.store = store
        return self.store

    def drop(self):
        stack, self.stack, self.store = self.stack, None, None
        if stack is not None:
            stack.close()


def remove_round(store, directory):
    """In a process of its own, with a limit: it must not hang what goes on."""
    path = f"{store.mount(store.hosts[0])}/{directory}"
    done = subprocess.run(["timeout", "-k", "5", "60", "rm", "-rf", path], check=False)
    return done.returncode == 0


def run_round(arguments, clusters, number):
    store = clusters.get()
    this = Round(arguments, store, number)
    print(f"round {number} (--seed {arguments.seed} --only {number}): {this.fault}", flush=True)
    try:
        row = this.run()
    except Exception as error:  # noqa: BLE001 - a round that cannot be done is a finding.
        traceback.print_exc(file=sys.stdout)
        row = {
            "round": number,
            "seed": this.seed,
            "fault": this.fault.kind,
            "target": this.fault.target,
            "complaints": [("broken", f"{type(error).__name__}: {error}")],
        }
        for process in this.load + this.finals:
            process.process.kill()
    for kind, text in row["complaints"][:12]:
        print(f"  {kind}: {text}"[:600])
    if row["complaints"]:
        if arguments.keep:
            kept = pathlib.Path(arguments.keep) / f"round-{number}"
            shutil.copytree(this.scratch, kept, dirs_exist_ok=True)
            for where, lines in store.logs():
                (kept / where.replace("/", "-")).write_text("\n".join(lines[-3000:]))
        clusters.drop()
    elif not remove_round(store, this.directory):
        row["complaints"].append(("hangs", "the round's directory cannot be removed"))
        clusters.drop()
    shutil.rmtree(this.scratch, ignore_errors=True)
    return row


def table_of(rows):
    groups = {}
    for row in rows:
        groups.setdefault((row["fault"], row["target"]), []).append(row)
    lines = []
    for (fault, target), members in sorted(groups.items()):
        lines.append(_line_of(f"{fault} {target}", members))
    lines.append(_line_of("all", rows))
    return lines


LOST = ("lost", "unreadable")
STALE = ("stale", "resurrected", "mixed", "zeroes", "unstable", "copies differ")


def _line_of(what, rows):
    found = {}
    errors = {}
    for row in rows:
        for kind, _ in row["complaints"]:
            found[kind] = found.get(kind, 0) + 1
        for name, count in row.get("errors", {}).items():
            errors[name] = errors.get(name, 0) + count
    other = {k: v for k, v in found.items() if k not in LOST + STALE + ("wait",)}
    other["cut"] = sum(row.get("found", {}).get("cut", 0) for row in rows)
    return (
        what,
        len(rows),
        sum(row.get("operations", 0) for row in rows),
        sum(row.get("reads", 0) for row in rows),
        f"{sum(row.get('acknowledged_bytes', 0) for row in rows) / 1e6:.0f} MB",
        sum(found.get(kind, 0) for kind in LOST),
        sum(found.get(kind, 0) for kind in STALE),
        sum(errors.values()),
        f"{max((row.get('longest_wait_s', 0) for row in rows), default=0):.1f} s",
        " ".join(f"{kind}:{count}" for kind, count in sorted(other.items()) if count) or "-",
        f"{sum(not row['complaints'] for row in rows)}/{len(rows)}",
    )


TITLES = [
    "fault",
    "rounds",
    "operations",
    "reads",
    "acknowledged",
    "lost",
    "stale",
    "errors",
    "longest wait",
    "other",
    "good",
]


def read_state(path, seed):
    """The rounds that are done. The file names the seed that they are of."""
    if path is None or not pathlib.Path(path).exists():
        return []
    lines = [json.loads(line) for line in open(path) if line.endswith("\n")]
    if lines and lines[0].get("seed") != seed:
        sys.exit(f"{path} has rounds of --seed {lines[0].get('seed')}, not {seed}")
    return lines[1:]


def run_all(arguments):
    wanted = range(arguments.rounds) if arguments.only is None else [arguments.only]
    rows = read_state(arguments.state, arguments.seed) if arguments.only is None else []
    done = {row["round"] for row in rows}
    state = None
    if arguments.state and arguments.only is None:
        fresh = not rows
        state = open(arguments.state, "w" if fresh else "a", buffering=1)
        if fresh:
            state.write(json.dumps({"seed": arguments.seed}) + "\n")
    clusters = Clusters(arguments)
    limit = time.monotonic() + arguments.limit
    try:
        for number in wanted:
            if number in done:
                continue
            if time.monotonic() > limit:
                print(f"the time of {arguments.limit} s is over after {len(rows)} rounds")
                break
            row = run_round(arguments, clusters, number)
            rows.append(row)
            if state:
                state.write(json.dumps(row) + "\n")
    finally:
        clusters.drop()
    cluster.print_table(TITLES, table_of(rows))
    if arguments.json:
        titles = [title.replace(" ", "_") for title in TITLES]
        table = [dict(zip(titles, line)) for line in table_of(rows)]
        whole = {"seed": arguments.seed, "table": table, "rounds": rows}
        pathlib.Path(arguments.json).write_text(json.dumps(whole, indent=1))
    return 1 if any(row["complaints"] for row in rows) else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="the directory of mosa and its daemons")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="any number; printed if not given")
    parser.add_argument("--state", help="a file of the rounds that are done, to go on with later")
    parser.add_argument("--only", type=int, help="this round alone, once more")
    parser.add_argument("--fault", default="", help="only faults with this in their name")
    parser.add_argument("--json", help="where the table and all rounds are written")
    parser.add_argument("--keep", help="a directory for journals and logs of rounds that fail")
    parser.add_argument(
        "--ram", default=RAM, help=f"of each node, {RAM} if not given; with 4G kernels write, too"
    )
    parser.add_argument("--limit", type=int, default=1 << 30, help="begin no round after so many s")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or (arguments.only is not None and arguments.only < 0):
        parser.error("--rounds and --only are numbers of rounds: at least 1 and 0")
    if not any(arguments.fault in " ".join(c) for c in rounds_faults.COMBINATIONS):
        parser.error(f"no fault has '{arguments.fault}' in its name")
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1 << 31)
    return arguments


def main():
    arguments = parse_arguments()
    reason = cluster.why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(cluster.SKIPPED)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    sys.exit(run_all(arguments))


if __name__ == "__main__":
    main()
