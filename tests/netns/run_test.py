"""`mosa run` on a real cluster: pipeline, reduce and broadcast give the same bytes with and without hints and locations;
failed tasks are retried; --resume runs only what is missing; Ctrl-C, kill -9, a host that dies or hangs and a node that is
gone lose nothing that was finished.
"""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import cluster
from cluster import check

PARTS = 4

# Chains of three, all of which read one table, and one task that gathers their ends.
WORDS = """name: words
tasks:
  - {id: table, command: seq 200000 > table, outputs: [table]}
""" + "".join(
    f"""
  - id: raw-{i}
    command: seq {i + 1} {PARTS} 900000 > raw/{i}
    outputs: [raw/{i}]
  - {{id: sort-{i}, command: LC_ALL=C sort -r raw/{i} > sorted/{i}, inputs: [raw/{i}], outputs: [sorted/{i}]}}
  - id: hash-{i}
    command: [sh, -ec, 'cat "$1" table | cksum > hash/{i}; wc -c < table >> hash/{i}', sh, sorted/{i}]
    inputs: [sorted/{i}, table]
    outputs: [hash/{i}]
"""
    for i in range(PARTS)
) + f"""
  - id: all
    command: cat hash/* > all
    inputs: [{", ".join(f"hash/{i}" for i in range(PARTS))}]
    outputs: [all]
"""


class Runner:
    """Runs `mosa run` in a directory of its own."""

    def __init__(self, store, directory):
        self.store = store
        self.directory = pathlib.Path(directory)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("MOSA_")}

    def command(self, name, *flags):
        store = self.store
        return [str(store.binaries.resolve() / "mosa"), "run", f"{name}.yaml", "--cluster", store.name,
                "--dir", str(store.directory), "--workdir", name, *flags]

    def write(self, name, text):
        (self.directory / f"{name}.yaml").write_text(text, encoding="utf-8")

    def run(self, name, *flags, expect=0, environment=None):
        """Runs workflow `name` to its end; returns its record and what it said."""
        done = subprocess.run(self.command(name, *flags), cwd=self.directory, env={**self.environment, **(environment or {})},
                              text=True, capture_output=True, timeout=200, check=False)
        check(done.returncode == expect,
              f"mosa run {name} {flags} ended with {done.returncode}, not {expect}: {done.stderr.strip()}")
        return self.record(name), done.stderr

    def start(self, name, *flags):
        return subprocess.Popen(self.command(name, *flags), cwd=self.directory, env=self.environment, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def record(self, name):
        path = self.directory / f"{name}.run.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def counters(self, host):
        return json.loads(os.getxattr(self.store.mount(host), "user.mosa.mount"))

    def path(self, name, file, host="h1"):
        return pathlib.Path(self.store.mount(host)) / name / file


def by_id(record):
    return {task["id"]: task for task in record["tasks"]}


def ran(record):
    """Ids of the tasks that this run ran, not an earlier one."""
    return sorted(task["id"] for task in record["tasks"] if task["attempts"] and not task["kept"])


def outputs(record):
    return [file["path"] for task in record["tasks"] for file in task["outputs"]]


def hint(path, name):
    try:
        return os.getxattr(path, f"user.mosa.{name}").decode()
    except OSError:
        return None


def check_systems_agree(runner):
    """The same bytes under WASS, under DSS and on a local disk; WASS tags, and goes where the bytes are."""
    for name, system in (("wass", "wass"), ("dss", "dss")):
        runner.write(name, WORDS)
        record, _ = runner.run(name, "--system", system)
        check(record["outcome"] == "done" and record["system"] == system, f"{system}: {record['outcome']}")
        check(all(len(task["attempts"]) == 1 for task in record["tasks"]), f"{system}: a task ran twice")
        hosts = {task["host"] for task in record["tasks"]}
        check(len(hosts) == 3, f"{system}: only {hosts} were used")
    local = runner.directory / "local"
    local.mkdir()
    done = subprocess.run([*runner.command("wass")[:3], "--mount", str(local), "--record", "local.json"],
                          cwd=runner.directory, env=runner.environment, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"the local run: {done.stderr}")
    record = runner.record("wass")
    for path in outputs(record):
        expected = (local / path).read_bytes()
        check(expected, f"{path} is empty: equality would prove nothing")
        for name in ("wass", "dss"):
            for host in runner.store.hosts:
                check(runner.path(name, path, host).read_bytes() == expected, f"{path} of {name} differs on {host}")
    tasks = by_id(record)
    at_home = 0
    for i in range(PARTS):
        check(hint(runner.path("wass", f"raw/{i}"), "pattern") == "pipeline", f"raw/{i} has no hint")
        check(hint(runner.path("wass", f"hash/{i}"), "pattern") == "reduce:all", f"hash/{i} has no hint")
        check(hint(runner.path("dss", f"raw/{i}"), "pattern") is None, f"raw/{i} has a hint under DSS")
        # A host that is busy for longer than moving takes is not waited for: that, and only that, takes a task elsewhere.
        sort, raw = tasks[f"sort-{i}"], tasks[f"raw-{i}"]
        here = sort["host"] == raw["host"]
        check((sort["input_bytes_remote"] == 0) == here and sort["inputs"][0]["size_bytes"] > 1_000_000, f"{sort}")
        check(here or "waited" in sort["attempts"][0]["placed"], f"sort-{i} ran away from its bytes: {sort}")
        at_home += here
    check(at_home >= PARTS // 2, f"only {at_home} of {PARTS} tasks ran where their input was")
    check(hint(runner.path("wass", "table"), "pattern") == "broadcast:3", "table has no hint")
    check(hint(runner.path("wass", "all"), "pattern") is None, "a result has a hint")
    moved = {name: sum(task["input_bytes_remote"] for task in runner.record(name)["tasks"]) for name in ("wass", "dss")}
    print(f"remote input: {moved['wass']:,} bytes under WASS, {moved['dss']:,} under DSS")
    check(moved["wass"] < moved["dss"], f"WASS moved no less: {moved}")


def check_copies_are_near(runner):
    """Tasks that read one broadcast file run at once on all hosts that have a copy, and move nothing."""
    directory = runner.path("near", "")
    directory.mkdir()
    table = directory / "table"
    table.touch()
    os.setxattr(table, "user.mosa.pattern", b"broadcast:3")
    table.write_bytes(os.urandom(40_000_000))

    def copies():
        layout = json.loads(os.getxattr(table, "user.mosa.layout"))
        return {node for segment in layout["segments"] for node in segment["nodes"]}

    cluster.wait_until(lambda: len(copies()) == 3, 30, "the table has three copies")
    tasks = "".join(f"  - {{id: t{i}, command: cksum table > sum{i} && sleep 1, inputs: [table], outputs: [sum{i}]}}\n"
                    for i in range(3))
    runner.write("near", "name: near\ntasks:\n" + tasks)
    record, _ = runner.run("near", "--slots", "1")
    check({task["host"] for task in record["tasks"]} == set(runner.store.hosts), f"they ran on {record['tasks']}")
    check(all(task["input_bytes_remote"] == 0 for task in record["tasks"]), f"bytes moved: {record['tasks']}")


def check_one_directory(runner):
    """DSS after WASS in one directory finds no hints of it there; absolute names of files of the run are known."""
    runner.write("both", f"""tasks:
  - {{id: a, command: echo a > d/x, outputs: [d/x]}}
  - {{id: b, command: cat d/x > d/e/y, inputs: [{runner.path("both", "d/x", "h3")}], outputs: [d/e/y]}}
  - {{id: c, command: cat d/e/y > d/z, inputs: [d/e/y], outputs: [d/z]}}
  - {{id: d, command: cat d/z, inputs: [d/z]}}
""")
    for system, pattern in (("wass", "pipeline"), ("dss", None), ("wass", "pipeline")):
        runner.run("both", "--system", system)
        for path in ("d/x", "d/e/y", "d/z"):
            found = hint(runner.path("both", path), "pattern")
            check(found == pattern, f"{path} has pattern {found} after {system}")


def check_rules(runner):
    """With --rules outputs have the rules' hints and no others, as `mosa advise` has predicted it."""
    runner.write("ruled", WORDS)
    rules = runner.directory / "rules.yaml"
    rules.write_text('mosa_rules: 1\nrules: {"raw/*": {placement: local}, "raw/1": {placement: stripe}, "none": {replicas: 2}}')
    record, said = runner.run("ruled", "--rules", str(rules))
    check(record["outcome"] == "done" and "rule 'none' matches no output" in said, said)
    for path, placement in (("raw/0", "local"), ("raw/1", "stripe"), ("table", None), ("hash/0", None)):
        found = hint(runner.path("ruled", path), "placement"), hint(runner.path("ruled", path), "pattern")
        check(found == (placement, None), f"{path} has placement and pattern {found}")


def check_resume(runner):
    """Nothing runs again but what is lost."""
    _, said = runner.run("wass", "--resume")
    check("14 of 14 tasks are kept" in said, said)
    check(not ran(runner.record("wass")), "something ran again though all is there")
    runner.path("wass", "sorted/2").unlink()
    _, said = runner.run("wass", "--resume")
    check(ran(runner.record("wass")) == ["sort-2"], f"after the loss of sorted/2 ran {ran(runner.record('wass'))}")
    runner.write("wass", WORDS.replace("seq 200000", "seq 200001"))
    record, _ = runner.run("wass", "--resume")
    changed = sorted(["table", "all", *[f"hash-{i}" for i in range(PARTS)]])
    check(ran(record) == changed, f"after a change ran {ran(record)}")
    check("1288902" in runner.path("wass", "hash/0").read_text(), "the change had no effect")


def check_reuse(runner):
    """Content decides what runs again: what was copied anew is the same, and what comes out the same changes nothing."""
    runner.write("reuse", WORDS)
    first, said = runner.run("reuse", "--reuse")
    check("nothing is reused: there is no earlier record" in said, said)
    check(all(file["checksum"] for task in first["tasks"] for file in task["outputs"]), "an output has no checksum")
    record, said = runner.run("reuse", "--reuse")
    check(not ran(record) and "14 of 14 tasks are kept" in said, said)
    check(record["turnaround_seconds"] < 0.5 * first["turnaround_seconds"], f"{record['turnaround_seconds']} s for nothing")
    # The same bytes again, by another mount, elsewhere and later.
    table = runner.path("reuse", "table", "h3")
    content = table.read_bytes()
    table.unlink()
    table.write_bytes(content)
    record, said = runner.run("reuse", "--reuse")
    check(not ran(record), f"after the same bytes were written again ran {ran(record)}")
    # Ids do not matter.
    runner.write("reuse", WORDS.replace("id: table", "id: tabula"))
    record, _ = runner.run("reuse", "--reuse")
    check(not ran(record), f"after a task got another name ran {ran(record)}")
    # A task that runs again and writes what it wrote then is the last one.
    runner.write("reuse", WORDS.replace("seq 200000", "seq 200000 | cat"))
    record, _ = runner.run("reuse", "--reuse")
    check(ran(record) == ["table"], f"after a change without effect ran {ran(record)}")
    runner.write("reuse", WORDS.replace("seq 200000", "seq 200001"))
    record, _ = runner.run("reuse", "--reuse")
    check(sorted(ran(record)) == sorted(["table", "all", *[f"hash-{i}" for i in range(PARTS)]]), f"ran {ran(record)}")
    # One byte of an input of one task.
    runner.path("reuse", "sorted/2").write_bytes(b"x" + runner.path("reuse", "sorted/2").read_bytes()[1:])
    record, said = runner.run("reuse", "--reuse")
    check(ran(record) == ["sort-2"] and "'sorted/2' is changed" in said, f"{ran(record)}: {said}")
    record, said = runner.run("reuse", "--reuse", environment={"LC_ALL": "C.UTF-8"})
    check(len(ran(record)) == 14 and "nothing is reused: the variable LC_ALL is not what it was then" in said, said)


def check_retry(runner):
    runner.write("retry", """tasks:
  - {id: once, command: "echo > tried.$MOSA_HOST; echo no luck >&2; test $(ls tried.* | wc -l) = 2; echo $MOSA_TASK > x",
     outputs: [x]}
  - {id: next, command: cat x > y, inputs: [x], outputs: [y]}
""")
    record, said = runner.run("retry", "--retries", "1")
    attempts = by_id(record)["once"]["attempts"]
    check(len(attempts) == 2 and attempts[0]["exit_code"] == 1 and attempts[1]["exit_code"] == 0, f"{attempts}")
    check(attempts[0]["host"] != attempts[1]["host"], "the retry was on the same host")
    check("no luck" in said, said)
    check(runner.path("retry", "y").read_text() == "once\n", "MOSA_TASK is not the task's id")
    # Hints need a file that is there before the task; what refuses to replace one does without them.
    runner.write("careful", """tasks:
  - {id: a, command: "set -C; echo a > x", outputs: [x]}
  - {id: b, command: "set -C; echo b > d/y", inputs: [x], outputs: [d/y]}
  - {id: c, command: "cat d/y", inputs: [d/y]}
""")
    tasks = by_id(runner.run("careful")[0])
    check([len(tasks[name]["attempts"]) for name in "abc"] == [2, 1, 1], f"{tasks}")
    check(hint(runner.path("careful", "d/y"), "pattern") == "pipeline", "d/y inherits no hint")
    runner.write("retry0", (runner.directory / "retry.yaml").read_text())
    _, said = runner.run("retry0", "--retries", "0", expect=3)
    check("task 'once' (line 2) failed 1 time, most recently on h" in said, said)


def check_directories(runner):
    """A directory as an output is one file to the graph; what a task leaves that is not what its path says, fails it."""
    runner.write("directories", """tasks:
  - {id: make, command: "mkdir -p out/sub && seq 60000 > out/a && echo b > out/sub/b", outputs: [out/]}
  - {id: own, command: "mkdir deep/own && seq 70000 > deep/own/c", outputs: [deep/own/]}
  - {id: use, command: "cat out/a out/sub/b deep/own/c | wc -l > total", inputs: [out/sub/b, out/a, deep/own], outputs: [total]}
""")
    record, _ = runner.run("directories")
    check(runner.path("directories", "total", "h3").read_text() == "130001\n", "total is wrong")
    tasks = by_id(record)
    sizes = {file["path"]: file["size_bytes"] for task in record["tasks"] for file in task["outputs"]}
    check(sizes["out/"] == sum(len(str(i)) + 1 for i in range(1, 60001)) + 2, f"{sizes}")
    read = tasks["use"]["input_bytes_local"] + tasks["use"]["input_bytes_remote"]
    check(read == sizes["out/"] + sizes["deep/own/"], f"{read} bytes were read of {sizes}")
    check(hint(runner.path("directories", "out/sub/b"), "pattern").startswith("reduce:use"), "out/sub/b has no hint")
    record, _ = runner.run("directories", "--resume")
    check(not ran(record), f"an unchanged run ran {ran(record)} again")
    runner.path("directories", "out/sub/b").unlink()
    record, _ = runner.run("directories", "--resume")
    check(ran(record) == ["make"], f"after the loss of a file in a directory ran {ran(record)}")
    record, _ = runner.run("directories")
    check(runner.path("directories", "out/a").exists() and not runner.path("directories", "out/z").exists(), "out")
    runner.write("wrong", """tasks:
  - {id: plain, command: "mkdir made", outputs: [made]}
  - {id: file, command: "echo > dir", outputs: [dir/]}
  - {id: none, command: "true", outputs: [none/]}
""")
    _, said = runner.run("wrong", "--retries", "0", "--keep-going", expect=3)
    for sentence in ("it made 'made' as a directory: name the output 'made/' if that is meant",
                     "it made 'dir/', but not as a directory", "it did not write 'none/'"):
        check(sentence in said, f"'{sentence}' is not in: {said}")
    # Each attempt fails before it starts.
    _, said = runner.run("wrong", "--retries", "2", expect=3)
    check("failed 3 times" in said and "'made' is a directory: remove it, or name the output 'made/'" in said, said)
    # What a user has put there is not a run's to remove.
    runner.write("own", 'tasks:\n  - {id: a, command: "mkdir -p d; echo > d/x", outputs: [d/]}\n')
    runner.path("own", "d").mkdir(parents=True)
    runner.path("own", "d/genome").write_text("ACGT\n")
    _, said = runner.run("own", expect=3)
    check("task 'a' (line 2) fills 'd/', which holds 5 bytes that no earlier run with this record has written" in said, said)
    check(runner.path("own", "d/genome").read_text() == "ACGT\n", "a user's file in an output directory is gone")


def check_needs(runner):
    """A task takes as many slots as it has cores, and memory where --memory says how much there is."""
    runner.write("needs", "tasks:\n" + "".join(
        f"  - {{id: t{i}, cores: {1 + i % 3}, memory: {300 + 100 * (i % 2)}M, command: 'echo $MOSA_CORES > x{i}; sleep 0.1', outputs: [x{i}]}}\n"
        for i in range(18)))
    record, _ = runner.run("needs", "--slots", "3", "--memory", "750M")
    for i in range(18):
        check(runner.path("needs", f"x{i}").read_text() == f"{1 + i % 3}\n", f"MOSA_CORES of t{i} is wrong")
    spans = [(task["host"], attempt["start"], attempt["end"], 1 + i % 3, 300 + 100 * (i % 2))
             for i, task in enumerate(record["tasks"]) for attempt in task["attempts"]]
    for host, start, _, _, _ in spans:
        beside = [other for other in spans if other[0] == host and other[1] <= start < other[2]]
        check(sum(other[3] for other in beside) <= 3, f"more cores than 3 on {host}: {beside}")
        check(sum(other[4] for other in beside) <= 750, f"more memory than 750M on {host}: {beside}")
    _, said = runner.run("needs", "--memory", "350M", expect=2)
    check("task 't1' (line 3) needs 400.0 MiB of memory, and no host has more than 350.0 MiB for tasks" in said, said)


def is_gone(path, seconds=10):
    end = time.monotonic() + seconds
    while path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return not path.exists()


LIVES = """tasks:
  - {id: make, command: "test -e made || { touch made; exit 1; }; seq 50000 > part; seq 60000 > once; seq 70000 > scratch",
     outputs: [part, once, scratch]}
  - {id: fast, command: "wc -l < part > fast", inputs: [part], outputs: [fast]}
  - {id: shaky, command: "wc -l < part > shaky; test -e tried || { touch tried; exit 1; }", inputs: [part], outputs: [shaky]}
  - {id: slow, command: "sleep 1; wc -l < part > slow", inputs: [part, fast], outputs: [slow]}
  - {id: only, command: "wc -l < once > only; head -n 1 once scratch > /dev/null", inputs: [once, scratch], outputs: [only]}
  - {id: end, command: "cat fast shaky slow only > end%s", inputs: [fast, shaky, slow, only], outputs: [end]}
files:
  part: {lifetime: "readers:3"}
  once: {lifetime: "readers:1"}
  scratch: {lifetime: temporary}
"""


def check_lifetimes(runner):
    """Files go when the tasks that read them have succeeded, or with their run; a run that failed keeps what it needs."""
    runner.write("lives", LIVES % "; test -e ready")
    record, said = runner.run("lives", expect=3)
    check("the store" not in said, f"the store was not told: {said}")
    for task in ("make", "shaky"):
        check(len(by_id(record)[task]["attempts"]) == 2, f"{task} was not tried twice")
    check(record["store_run"].startswith("mosa-run-"), f"{record.get('store_run')}")
    for file in ("part", "once"):
        check(is_gone(runner.path("lives", file)), f"{file} is there after its last reader has succeeded")
    check(runner.path("lives", "scratch").exists(), "a failed run has lost its temporary file")
    runner.path("lives", "ready").touch()
    record, _ = runner.run("lives", "--resume")
    check(ran(record) == ["end"], f"--resume ran {ran(record)}")
    check(runner.path("lives", "end").read_text() == "50000\n50000\n50000\n60000\n", "the result is wrong")
    check(is_gone(runner.path("lives", "scratch")), "scratch is there after its run")
    record, _ = runner.run("lives", "--resume")
    check(not ran(record), f"with all done, --resume ran {ran(record)}")
    runner.path("lives", "slow").unlink()
    record, _ = runner.run("lives", "--resume")
    check(ran(record) == ["make", "slow"], f"for a lost file whose writer's input is gone ran {ran(record)}")
    # A run that failed and is not resumed leaves nothing: the next one ends it.
    runner.path("lives", "ready").unlink()
    runner.run("lives", "--retries", "1", expect=3)
    first = runner.path("lives", "scratch").stat().st_ino
    runner.path("lives", "ready").touch()
    runner.run("lives")
    check(is_gone(runner.path("lives", "scratch")), f"scratch (inode {first} before) is there after the second run")


def plan_of(hosts, files, patience_s=30, reads_ahead=False):
    """A plan by hand: task -> host, path -> hints."""
    names = ["h1", "h2", "h3"]
    return json.dumps({
        "mosa_plan": 1, "workflow": "planned", "configuration": "hosts=3", "hosts": names,
        "predicted": {"seconds": 1, "seconds_interval": None, "unplanned_seconds": 2, "unplanned_failure": "", "gain_s": 1, "gain_interval_s": None,
                      "link_bytes": 0, "unplanned_link_bytes": 0, "store_bytes_max": {}},
        "tasks": [{"id": task, "host": host, "start_s": 0, "end_s": 1, "patience_s": patience_s}
                  for task, host in hosts.items()],
        "reads_ahead": reads_ahead,
        "files": files,
    })


def check_plan(runner):
    """Tasks run on the hosts that a plan names, and files go where it says, until a host is late or its plan is another's."""
    runner.write("planned", WORDS)
    places = {"table": "h3", "all": "h2"}
    for i in range(PARTS):
        places |= {f"raw-{i}": "h1", f"sort-{i}": ("h2", "h3")[i % 2], f"hash-{i}": "h1"}
    files = {f"raw/{i}": {"placement": f"node:{('h2', 'h3')[i % 2]}"} for i in range(PARTS)}
    plan = runner.directory / "plan.json"
    plan.write_text(plan_of(places, files))
    record, _ = runner.run("planned", "--plan", str(plan))
    check({task["id"]: task["host"] for task in record["tasks"]} == places, f"{record['tasks']}")
    check({task["attempts"][0]["placed"] for task in record["tasks"]} == {"as planned"}, f"{record['tasks']}")
    check(record["plan"] == str(plan), f"the record names {record.get('plan')}")
    tasks = by_id(record)
    for i in range(PARTS):
        check(tasks[f"sort-{i}"]["input_bytes_remote"] == 0, f"raw/{i} did not go to its reader: {tasks[f'sort-{i}']}")
        check(hint(runner.path("planned", f"hash/{i}"), "pattern") is None, f"hash/{i} has a hint that the plan does not give")
        same = runner.path("planned", f"hash/{i}").read_bytes() == runner.path("wass", f"hash/{i}").read_bytes()
        check(same, f"hash/{i} differs under a plan")
    # A host that is busy for too long is left.
    runner.write("late", "tasks:\n" + "".join(f"  - {{id: s{i}, command: sleep 1.5}}\n" for i in range(3)))
    plan.write_text(plan_of({f"s{i}": "h1" for i in range(3)}, {}, patience_s=0.5))
    record, _ = runner.run("late", "--plan", str(plan), "--slots", "1")
    placed = sorted(task["attempts"][0]["placed"] for task in record["tasks"])
    check(placed == ["as planned"] + ["its planned host was busy for too long"] * 2, f"{placed}")
    check(len({task["host"] for task in record["tasks"]}) == 3, f"{record['tasks']}")
    _, said = runner.run("wass", "--plan", str(plan), expect=3)
    check("plan.json: the plan does not fit this workflow: it has no task 'table'" in said, said)


def check_read_ahead(runner):
    """While a host computes, it reads what its next task needs, and the task finds it in the host's page cache."""
    runner.write("ahead", """tasks:
  - {id: make, command: "seq 1000000 > big; seq 400000 > other; seq 10 > small", outputs: [big, other, small]}
  - {id: compute, command: sleep 2, after: [make]}
  - {id: use, command: cksum big small > sum, inputs: [big, small], outputs: [sum]}
  - {id: here, command: cksum other > sum1, inputs: [other], outputs: [sum1], after: [make]}
""")
    places = {"make": "h1", "compute": "h2", "use": "h2", "here": "h1"}
    plan = runner.directory / "ahead.json"
    for ahead in (False, True):
        files = {name: {"placement": "local"} for name in ("big", "other", "small")}
        plan.write_text(plan_of(places, files, reads_ahead=ahead))
        before = runner.counters("h2")
        record, said = runner.run("ahead", "--plan", str(plan), "--slots", "1")
        after = runner.counters("h2")
        check({task["id"]: task["host"] for task in record["tasks"]} == places, f"{record['tasks']}")
        size = runner.path("ahead", "big").stat().st_size
        read = after["bytes_read_remote"] - before["bytes_read_remote"]
        # Only h2 lacks a file, and the small one is not worth a reader. It is read once in either case.
        check(size <= read < 1.5 * size, f"with reads_ahead {ahead}, h2 read {read} bytes from others; the file has {size}")
        check(record.get("read_ahead_bytes", 0) == (size if ahead else 0), f"{record.get('read_ahead_bytes')}")
        check(record.get("read_ahead_used_bytes", 0) == (size if ahead else 0), f"{record.get('read_ahead_used_bytes')}")
    command = [*runner.command("ahead")[:3], *exec_flags(runner), "--workdir", "ahead", "--plan", str(plan)]
    done = subprocess.run(command, cwd=runner.directory, env=runner.environment, capture_output=True, text=True,
                          timeout=100, check=False)
    check(done.returncode == 0, f"with --exec: {done.stderr}")
    check(runner.record("ahead")["read_ahead_bytes"] == size, f"with --exec, not {size} bytes were read ahead")


def check_failures(runner):
    """A task that fails is named with its line, and what went wrong; the others are kept."""
    elsewhere = runner.directory / "elsewhere"
    runner.write("failures", f"""tasks:
  - {{id: outside, command: echo > {elsewhere}, outputs: [x]}}
  - {{id: nowhere, command: [no-such-program, 1], outputs: [y]}}
  - {{id: fine, command: echo > z, outputs: [z]}}
""")
    record, said = runner.run("failures", "--retries", "0", "--keep-going", expect=3)
    for sentence in ("task 'outside' (line 2) failed 1 time, most recently on h", "exit code 0, but it did not write 'x'",
                     "task 'nowhere' (line 3) failed 1 time, most recently on h",
                     "exit code 127: mosa run: cannot run no-such-program: No such file or directory"):
        check(sentence in said, f"{said} does not say: {sentence}")
    check([task["state"] for task in record["tasks"]] == ["failed", "failed", "done"], f"{record['tasks']}")


LONG = "tasks:\n" + "".join(
    f"""  - {{id: a{i}, command: "sleep 0.9; seq {i} 300000 > a{i}", outputs: [a{i}]}}
  - {{id: b{i}, command: "sleep 0.9; wc a{i} > b{i}", inputs: [a{i}], outputs: [b{i}]}}
"""
    for i in range(9)
) + f"""  - {{id: end, command: "cat {" ".join(f"b{i}" for i in range(9))} > end",
     inputs: [{", ".join(f"b{i}" for i in range(9))}], outputs: [end]}}
"""


def wait_for_tasks(runner, name, count):
    def enough():
        record = runner.record(name)
        return record and sum(task["state"] == "done" for task in record["tasks"]) >= count

    cluster.wait_until(enough, 60, f"{count} tasks of {name}")


def check_interrupt(runner):
    runner.write("interrupt", LONG)
    process = runner.start("interrupt", "--slots", "1")
    wait_for_tasks(runner, "interrupt", 4)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    check(process.returncode == 130, f"Ctrl-C: {process.returncode} {said}")
    left = [host for host in runner.store.hosts if "sleep 0.9" in runner.store.exec(host, "ps", "-eo", "args").stdout]
    check(not left, f"tasks go on after Ctrl-C on {left}")
    record = runner.record("interrupt")
    finished = {task["id"] for task in record["tasks"] if task["state"] == "done"}
    check(record["outcome"] == "interrupted" and len(finished) >= 4, f"{record['outcome']}, done: {finished}")
    why = record["residence"]["failure"]
    check("no answer" not in why, f"the mount is blamed for the signal: {why}")
    record, _ = runner.run("interrupt", "--resume")
    check(record["outcome"] == "done", record["outcome"])
    check(not finished & set(ran(record)), f"ran again: {finished & set(ran(record))}")


def processes_with(text):
    return [line for line in subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True,
                                            check=True).stdout.splitlines() if text in line]


def check_killed_runner(runner):
    """kill -9 of the runner ends all that its tasks have started; until then nobody else has the record."""
    runner.write("killed", """tasks:
  - {id: a, command: "sleep 333.25 && echo > x", outputs: [x]}
  - {id: b, command: echo b > y, outputs: [y]}
""")
    process = runner.start("killed")
    wait_for_tasks(runner, "killed", 1)
    cluster.wait_until(lambda: processes_with("sleep 333.25"), 20, "the task's process")
    _, said = runner.run("killed", "--resume", expect=3)
    check(f"'mosa run' process {process.pid} has the record" in said, said)
    process.kill()
    process.communicate(timeout=10)
    runner.write("killed", (runner.directory / "killed.yaml").read_text().replace("333.25", "0.01"))
    record, said = runner.run("killed", "--resume")
    check(not processes_with("sleep 333.25"), "a task of the killed run goes on")
    check(record["outcome"] == "done" and ran(record) == ["a"], f"ran {ran(record)}: {said}")


def check_hung_host(runner):
    """A mount that hangs loses its host, not the run; it is left out of the next one."""
    runner.write("hung", LONG)
    mount = runner.store.pid("mount", "h2")
    process = runner.start("hung", "--slots", "1")
    wait_for_tasks(runner, "hung", 4)
    cluster.stop(mount)
    try:
        said = process.communicate(timeout=150)[1]
        check(process.returncode == 0, f"with a mount that hangs: {process.returncode} {said}")
        check("host h2 is lost" in said and runner.record("hung")["hosts_lost"] == ["h2"], said)
        runner.write("without", "tasks:\n  - {id: a, command: echo > x, outputs: [x]}\n")
        _, said = runner.run("without")
        check("host h2 is left out" in said, said)
    finally:
        os.kill(mount, signal.SIGCONT)
    end = runner.path("hung", "end").read_text().splitlines()
    check([line.split() for line in end] == expected_end(), f"the result differs: {end}")
    cluster.wait_until(lambda: not processes_with("sleep 0.9"), 20, "the end of what ran on h2")
    cluster.wait_until(lambda: hint(runner.store.mount("h2"), "mount"), 20, "h2's mount")


def expected_end():
    rows = []
    for i in range(9):
        lines = [f"{n}\n" for n in range(i, 300001)]
        rows.append([str(len(lines)), str(len(lines)), str(sum(map(len, lines))), f"a{i}"])
    return rows


def lost_files(runner, name):
    """Path below the run's directory -> task, of what `mosa lost` lists."""
    store = runner.store
    done = subprocess.run([str(store.binaries / "mosa"), "lost", "--json", "--name", store.name, "--dir",
                           str(store.directory)], capture_output=True, text=True, timeout=30, check=True)
    files = {file["path"]: file["task"] for file in json.loads(done.stdout)}
    return {path.removeprefix(f"/{name}/"): task for path, task in files.items() if path.startswith(f"/{name}/")}


def check_lost_node(runner):
    """A storage node is gone for good under a run: it names what is lost, and runs again what wrote that, nothing else."""
    gate = runner.directory / "gate"
    runner.write("node", """files: {r: {placement: "node:h2"}}
tasks:
  - {id: r, command: "seq 1 300000 > r", outputs: [r]}
""" + "".join(f"""
  - {{id: a{i}, command: "seq {i} 300000 > a{i}", outputs: [a{i}]}}
  - {{id: b{i}, command: "until test -e {gate}; do sleep 0.1; done; cat a{i} > b{i}", inputs: [a{i}], outputs: [b{i}]}}
""" for i in range(3)))
    process = runner.start("node", "--slots", "1", "--retries", "0")
    wait_for_tasks(runner, "node", 4)
    place = {name: os.getxattr(runner.path("node", name), "user.mosa.location").decode() for name in ("r", "a0", "a1", "a2")}
    check(list(place.values()).count("h2") > 1, f"too little lies on h2: {place}")
    gone = {name for name, node in place.items() if node == "h2"}
    runner.store.kill("storage", "h2")
    cluster.wait_until(lambda: set(lost_files(runner, "node")) == gone, 30, f"{gone} in mosa lost")
    gate.touch()
    said = process.communicate(timeout=150)[1]
    check(process.returncode == 0, f"with a lost node: {process.returncode} {said}")
    tasks = by_id(runner.record("node"))
    for name in place:
        line = tasks[name]
        check((f"'{name}' is lost: task '{name}' (line " in said) == (name in gone), f"{name}, of {gone} lost: {said}")
        check(len(line["attempts"]) == (2 if name in gone else 1), f"{name} ran {len(line['attempts'])} times")
    for i in range(3):
        check(runner.path("node", f"b{i}").read_text() == "".join(f"{n}\n" for n in range(i, 300001)), f"b{i} differs")
    # And of a run that has ended.
    before = lost_files(runner, "node")
    check(not before, f"lost although the run is done: {before}")
    for name in place:  # What the kernel keeps of them says nothing of their nodes.
        with open(runner.path("node", name), "rb") as file:
            file.read(1 << 20)
    runner.store.kill("storage", "h3")
    lost = cluster.wait_until(lambda: lost_files(runner, "node"), 30, "a file in mosa lost")
    record, said = runner.run("node", "--resume")
    check(ran(record) == sorted(set(lost.values())), f"ran {ran(record)}, lost are {lost}: {said}")
    for path, task in lost.items():
        check(f"'{path}' is lost: task '{task}' (line " in said, f"{said} does not name {path} and {task}")
    check(not lost_files(runner, "node"), "something is still lost")


def check_lost_host(runner):
    """A host dies with its node: its tasks go elsewhere, and what only it held is written again."""
    expected = runner.path("interrupt", "end").read_bytes()
    runner.write("lost", LONG)
    process = runner.start("lost", "--slots", "1")
    wait_for_tasks(runner, "lost", 4)
    for kind in ("storage", "mount"):
        runner.store.kill(kind, "h2")
    said = process.communicate(timeout=150)[1]
    check(process.returncode == 0, f"with a lost host: {process.returncode} {said}")
    record = runner.record("lost")
    check(record["hosts_lost"] == ["h2"], f"lost: {record['hosts_lost']}; {said}")
    check(runner.path("lost", "end").read_bytes() == expected, "the result differs")
    check(all(task["host"] != "h2" for task in record["tasks"] if task["id"] == "end"), "the end ran on the lost host")
    # A run that had finished before: only what the lost host alone held is written again.
    held = {task["id"] for task in runner.record("interrupt")["tasks"] if "h2" in task["outputs"][0]["nodes"]}
    record, said = runner.run("interrupt", "--resume")
    check("host h2 is left out" in said and record["outcome"] == "done", said)
    check(ran(record) and set(ran(record)) <= held, f"ran {ran(record)}, of what lay on h2: {held}")
    check(runner.path("interrupt", "end").read_bytes() == expected, "the result differs after --resume")


def check_refusals(runner):
    rows = [
        ("tasks:\n  - {id: a, command: x, outputs: [/f]}\n", 2, "task 'a' (line 2) writes '/f', which is outside the mount"),
        ("tasks: [\n", 2, "line 2: not YAML"),
        ("tasks:\n  - {id: a, command: x, inputs: [nothing]}\n", 3,
         "task 'a' (line 2) reads 'nothing', which no task writes and which does not exist: copy it to "),
        ("tasks:\n  - {id: a, command: x, outputs: [f]}\nfiles:\n  f: {pattern: nonsense}\n", 2,
         "file 'f': the mount does not take the hint pattern=nonsense"),
        ("tasks:\n  - {id: a, command: x, inputs: [g], outputs: [f]}\n  - {id: b, command: x, inputs: [f], outputs: [g]}\n", 2,
         "tasks wait for each other in a cycle: task 'a' (line 2) waits for task 'b' (line 3) waits for task 'a' (line 2)"),
        ("tasks:\n  - {id: a, command: x, outputs: [f]}\n  - {id: b, command: x, outputs: [f]}\n", 2,
         "'f' is written by task 'a' (line 2) and by task 'b' (line 3)"),
    ]
    for text, code, sentence in rows:
        runner.write("bad", text)
        record, said = runner.run("bad", expect=code)
        check(sentence in said, f"{said} does not say: {sentence}")
        check(record is None, "a refused run wrote a record")
    runner.write("bad", "tasks:\n  - {id: a, command: 'true'}\n")
    _, said = runner.run("bad", "--resume", expect=3)
    check("cannot read bad.run.json" in said, said)
    done = subprocess.run([*runner.command("bad")[:3], "--cluster", "nobody", "--dir", str(runner.directory)],
                          cwd=runner.directory, env=runner.environment, capture_output=True, text=True, check=False)
    check(done.returncode == 3 and "there is no cluster named 'nobody'" in done.stderr, done.stderr)


def exec_flags(runner):
    """Names the cluster's hosts as if they were reached by a command."""
    store = runner.store
    mount = str(pathlib.Path(store.mount("h1")).parent.parent / "{host}" / "mount")
    through = f"{store.binaries.resolve()}/mosa cluster exec --name {store.name} --dir {store.directory} {{host}} -- sh -c"
    return ["--mount", mount, "--hosts", "h1,h2,h3", "--exec", through]


def check_exec(runner):
    """Hosts that are reached by a command: here the cluster's own."""
    command = [*runner.command("wass")[:3], *exec_flags(runner), "--workdir", "exec", "--record", "exec.run.json"]
    done = subprocess.run(command, cwd=runner.directory, env=runner.environment, capture_output=True, text=True,
                          timeout=100, check=False)
    check(done.returncode == 0, f"with --exec: {done.stderr}")
    check(len({task["host"] for task in runner.record("exec")["tasks"]}) == 3, "not all hosts were used")
    check(runner.path("exec", "all").read_bytes() == runner.path("wass", "all").read_bytes(), "--exec gives other bytes")


def test(arguments):
    groups = ((check_refusals, check_systems_agree, check_copies_are_near, check_one_directory, check_rules, check_plan,
               check_read_ahead, check_resume, check_reuse, check_exec, check_retry, check_directories, check_needs, check_lifetimes, check_failures, check_interrupt, check_killed_runner, check_lost_host),
              (check_hung_host, check_lost_node))
    for parts in groups:
        with cluster.Cluster(arguments.bin, 3, ram="256M", rate="400mbit") as store, tempfile.TemporaryDirectory() as directory:
            runner = Runner(store, directory)
            for part in parts:
                if arguments.only and part.__name__ not in arguments.only:
                    continue
                begin = time.monotonic()
                part(runner)
                print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


def add_arguments(parser):
    parser.add_argument("--only", action="append", help="names of checks; some need those before them")


if __name__ == "__main__":
    cluster.main(test, add_arguments=add_arguments, description=__doc__)
