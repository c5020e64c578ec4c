"""`mosa trace` on a real cluster of two hosts: a small workflow of real programs is traced, becomes a workload with the
graph and the bytes that it had, and is predicted; a trace that is cut short, full or stopped half way says so.
"""

import json
import os
import pathlib
import signal
import subprocess
import tempfile

import cluster
from cluster import check, wait_until

PLATFORM = pathlib.Path(__file__).resolve().parents[1] / "predict" / "platform_guess.json"
BOOK_BYTES = 6 << 20

# Two hosts; every program is a task. On h2 the file of h1 is read in parts: by its middle, and by its end.
FIRST = "cd $MOSA_MOUNT && head -c 4194304 book > head.txt && sort head.txt > dir/sorted.tmp && mv dir/sorted.tmp dir/sorted"
SECOND = ("cd $MOSA_MOUNT && dd if=book of=middle bs=64K skip=16 count=16 iflag=direct status=none && "
          "cat dir/sorted middle > both && wc -c < both > total")


class Tracing:
    def __init__(self, store, directory):
        self.store = store
        self.directory = pathlib.Path(directory)
        self.mosa = str(store.binaries.resolve() / "mosa")
        self.of_cluster = ["--name", store.name, "--dir", str(store.directory)]

    def run(self, *words, expect=0, environment=None):
        done = subprocess.run([self.mosa, *map(str, words)], capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, **(environment or {})})
        check(done.returncode == expect, f"mosa {words} ended with {done.returncode}, not {expect}: {done.stderr.strip()}")
        return done

    def json(self, *words, expect=0):
        return json.loads(self.run("--json", *words, expect=expect).stdout)

    def refused(self, *words, code, says):
        done = self.run(*words, expect=code)
        check(says in done.stderr and done.stderr.count("\n") == 1, f"{words}: {done.stderr!r} does not say {says!r}")

    def on(self, host, command, task=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MOSA_")}
        environment["MOSA_MOUNT"] = self.store.mount(host)
        if task:
            environment["MOSA_TASK"] = task
        done = self.store.exec(host, "sh", "-ec", command, env=environment, timeout=60)
        check(done.returncode == 0, f"{command} on {host}: {done.stderr}")
        return done.stdout

    def stats(self, host):
        return json.loads(os.getxattr(self.store.mount(host), "user.mosa.mount"))


def rows_of(tracing, traces, **wanted):
    rows = tracing.json("trace", "show", *traces)["rows"]
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def sums(rows, key):
    return sum(row[key] for row in rows)


def test_workflow(tracing):
    """Bytes per program are what it really read and wrote; the graph is that of the shell's lines."""
    store = tracing.store
    book = pathlib.Path(store.mount("h1")) / "book"
    # Lines of 64 bytes: whatever is cut off ends with one.
    book.write_bytes(b"".join(os.urandom(32).hex()[:63].encode() + b"\n" for _ in range(BOOK_BYTES // 64)))
    os.mkdir(pathlib.Path(store.mount("h1")) / "dir")
    directory = tracing.directory / "workflow"
    tracing.run("trace", "start", *tracing.of_cluster, "-o", directory)
    opens = tracing.stats("h1")["opens_passthrough"]
    tracing.on("h1", FIRST)
    tracing.on("h2", SECOND)
    check(tracing.stats("h1")["opens_passthrough"] == opens, "a full trace passes no file to the kernel")
    stopped = tracing.json("trace", "stop", *tracing.of_cluster)
    check([s["end"] for s in stopped] == ["stopped"] * 2 and not any(s["dropped"] for s in stopped), f"{stopped}")
    traces = sorted(directory.glob("*.trace"))
    check([t.name for t in traces] == ["h1.trace", "h2.trace"], f"{traces}")

    shown = tracing.json("trace", "show", *traces)
    check(shown["whole"] and shown["renames"] == 1, f"{shown['renames']} renames")
    one = {}
    for row in shown["rows"]:
        one.setdefault((row["command"], row["path"]), row)
        check(not row["estimated"], f"estimated: {row}")
    mib = 1 << 20
    wanted = {("head", "head.txt"): ("bytes_written", 4 * mib), ("sort", "head.txt"): ("bytes_read", 4 * mib),
              ("sort", "dir/sorted"): ("bytes_written", 4 * mib), ("dd", "book"): ("bytes_read", mib),
              ("dd", "middle"): ("bytes_written", mib), ("cat", "both"): ("bytes_written", 5 * mib),
              ("cat", "dir/sorted"): ("bytes_read", 4 * mib), ("cat", "middle"): ("bytes_read", mib),
              ("wc", "total"): ("bytes_written", 8)}
    for key, (what, count) in wanted.items():
        check(key in one, f"no row of {key}: {sorted(one)}")
        check(one[key][what] == count, f"{key} {what}: {one[key][what]}, not {count}")
    check(one["dd", "book"]["reads"] == 16 and not one["dd", "book"]["sequential"], f"{one['dd', 'book']}")
    check(one["sort", "head.txt"]["sequential"] and one["sort", "head.txt"]["host"] == "h1", f"{one['sort', 'head.txt']}")

    output = tracing.directory / "words.json"
    made = tracing.json("trace", "workload", *traces, "-o", output)
    check(made["whole"] and made["tasks"] == 5, f"{made}")
    workflow = json.loads(output.read_text())["workflow"]
    tasks = {task["name"]: task for task in workflow["specification"]["tasks"]}
    check(tasks["sort"]["inputFiles"] == ["head.txt"] and tasks["sort"]["outputFiles"] == ["dir/sorted"], f"{tasks['sort']}")
    check(sorted(tasks["cat"]["parents"]) == sorted([tasks["sort"]["id"], tasks["dd"]["id"]]), f"{tasks['cat']}")
    check(tasks["dd"]["parents"] == [] and tasks["wc"]["parents"] == [tasks["cat"]["id"]], "the graph")
    sizes = {file["id"]: file["sizeInBytes"] for file in workflow["specification"]["files"]}
    check(sizes["book"] == BOOK_BYTES and sizes["both"] == 5 * mib, f"{sizes}")
    return output, made["operations"]


def test_prediction(tracing, output, operations):
    """The workload is predicted; with its operations, tasks read what they have read."""
    words = ["predict", "--platform", PLATFORM, "--workload", output, "--config", "hosts=2", "--repeats", 0]
    whole = {t["stage"]: t for t in tracing.json(*words)["tasks"]}
    played = {t["stage"]: t for t in tracing.json(*words, "--operations", operations)["tasks"]}

    def read(task):
        return task["bytes_read_local"] + task["bytes_read_remote"] + task["bytes_read_cached"]

    check(read(whole["dd"]) == BOOK_BYTES, f"without operations the whole file: {whole['dd']}")
    # What the mount would fetch ahead may come besides.
    check(1 << 20 <= read(played["dd"]) < BOOK_BYTES, f"with them its part: {played['dd']}")
    check(read(played["cat"]) == 5 << 20 and played["cat"]["bytes_written"] == 5 << 20, f"{played['cat']}")
    done = tracing.run(*words, "--operations", output, expect=2)
    check("not a file of operations" in done.stderr, done.stderr)


def test_tasks(tracing):
    """A `mosa run` is traced by task, with the runtimes of its record."""
    workflow = tracing.directory / "run.yaml"
    workflow.write_text("""
tasks:
  - {id: make, command: seq 100000 > numbers, outputs: [numbers]}
  - {id: left, command: sleep 0.3; grep 1 numbers > left, inputs: [numbers], outputs: [left]}
  - {id: right, command: grep 2 numbers > right, inputs: [numbers], outputs: [right]}
  - {id: join, command: cat left right > joined, inputs: [left, right], outputs: [joined]}
""")
    record = tracing.directory / "run.record.json"
    directory = tracing.directory / "run"
    tracing.run("trace", "run", *tracing.of_cluster, "-o", directory, "--", tracing.mosa, "run", workflow, "--cluster",
                tracing.store.name, "--dir", tracing.store.directory, "--record", record, "--workdir", "run")
    traces = sorted(directory.glob("*.trace"))
    output = tracing.directory / "run.json"
    tracing.json("trace", "workload", *traces, "--record", record, "-o", output)
    workflow = json.loads(output.read_text())["workflow"]
    tasks = {task["id"]: task for task in workflow["specification"]["tasks"]}
    check({"make", "left", "right", "join"} <= set(tasks), f"{sorted(tasks)}")
    check(sorted(tasks["join"]["parents"]) == ["left", "right"], f"{tasks['join']}")
    check(tasks["left"]["inputFiles"] == ["run/numbers"], f"{tasks['left']}")
    recorded = {t["id"]: t["end"] - t["start"] for t in json.loads(record.read_text())["tasks"]}
    for task in workflow["execution"]["tasks"]:
        if task["id"] in recorded:
            check(abs(task["runtimeInSeconds"] - recorded[task["id"]]) < 0.001, f"{task} {recorded[task['id']]}")
    alone = tracing.directory / "alone.json"
    made = tracing.json("trace", "workload", "--record", record, "-o", alone)
    check(made["tasks"] == 4 and made["operations"] is None, f"{made}")
    for workload in (output, alone):
        tracing.json("predict", "--platform", PLATFORM, "--workload", workload, "--config", "hosts=2", "--repeats", 0)


def test_light(tracing):
    """A light trace leaves passthrough as it is; what the kernel carried is estimated by sizes."""
    mount = pathlib.Path(tracing.store.mount("h1"))
    directory = tracing.directory / "light"
    os.mkdir(mount / "here")
    os.setxattr(mount / "here", "user.mosa.placement", b"local")
    tracing.run("trace", "start", mount, "-o", directory, "--light")
    before = tracing.stats("h1")["opens_passthrough"]
    tracing.on("h1", "cd $MOSA_MOUNT/here && head -c 3000000 /dev/zero > a && cat a > /dev/null", task="light")
    passed = tracing.stats("h1")["opens_passthrough"] - before
    tracing.run("trace", "stop", mount)
    check(passed >= 1, "a light trace keeps passthrough")
    row, = rows_of(tracing, [directory / "h1.trace"], path="here/a", task="light")
    check(row["estimated"] and row["bytes_read"] == row["bytes_written"] == 3000000, f"{row}")


def test_cold(tracing):
    """Of a file that the kernel has in full, a cold trace has what a task asks for, and not an estimate of all."""
    mount = pathlib.Path(tracing.store.mount("h2"))
    (mount / "kept").write_bytes(os.urandom(8 << 20))
    directory = tracing.directory / "cold"
    tracing.run("trace", "start", mount, "-o", directory, "--cold")
    tracing.on("h2", "cd $MOSA_MOUNT && cat kept > /dev/null", task="all")
    tracing.on("h2", "cd $MOSA_MOUNT && head -c 4096 kept > /dev/null", task="begin")
    tracing.on("h2", "cd $MOSA_MOUNT && cat kept > /dev/null", task="again")
    tracing.run("trace", "stop", mount)
    rows = {row["task"]: row for row in rows_of(tracing, [directory / "h2.trace"], path="kept")}
    check(not any(row["estimated"] for row in rows.values()), f"{rows}")
    check(rows["all"]["bytes_read"] == rows["again"]["bytes_read"] == 8 << 20, f"{rows}")
    check(4096 <= rows["begin"]["bytes_read"] < 4 << 20, f"{rows['begin']}")  # The kernel reads ahead.
    tracing.refused("trace", "start", mount, "-o", directory, "--cold", "--light", code=2, says="--light")


def test_made_anew(tracing):
    """What a task removes before it makes it anew it removes in its workload too, whichever process or thread removes it."""
    mount = pathlib.Path(tracing.store.mount("h1"))
    for name in ("by_rm", "by_thread"):
        (mount / name).touch()
    directory = tracing.directory / "anew"
    tracing.run("trace", "start", mount, "-o", directory)
    tracing.on("h1", "cd $MOSA_MOUNT && ls -l > /dev/null && rm -f by_rm && head -c 5000 /dev/zero > by_rm", task="shell")
    program = ("import os, threading; removal = threading.Thread(target=os.unlink, args=('by_thread',)); removal.start(); "
               "removal.join(); open('by_thread', 'w').write('x' * 5000)")
    tracing.on("h1", f'cd $MOSA_MOUNT && exec python3 -c "{program}"')
    tracing.run("trace", "stop", mount)
    made = tracing.json("trace", "workload", directory / "h1.trace", "-o", tracing.directory / "anew.json")
    tasks = json.loads(pathlib.Path(made["operations"]).read_text())["tasks"]
    kinds = {task["files"][0]: [operation.split()[1] for operation in task["operations"]] for task in tasks}
    check({name: list(kinds[name])[:2] for name in kinds} == {"by_rm": ["d", "w"], "by_thread": ["d", "w"]}, f"{tasks}")


def test_refusals(tracing):
    mount = tracing.store.mount("h1")
    directory = tracing.directory / "refusals"
    missing = tracing.directory / "missing"
    tracing.refused("trace", "start", missing, "-o", directory, code=3, says="missing")
    tracing.refused("trace", "start", tracing.directory, "-o", directory, code=3, says="not a Mosa mount")
    tracing.refused("trace", "start", mount, "-o", f"{mount}/t", code=2, says="would trace itself")
    (tracing.directory / "link").symlink_to(mount)
    tracing.refused("trace", "start", mount, "-o", tracing.directory / "link", code=2, says="would trace itself")
    tracing.refused("trace", "start", mount, "-o", tracing.directory / "link" / "t", code=2, says="would trace itself")
    check(not os.path.exists(f"{mount}/t"), "what is refused is not made")
    # The mount itself refuses too, whoever asks; the root's lock is held meanwhile.
    os.mkdir(f"{mount}/t")
    try:
        os.setxattr(mount, "user.mosa.trace", f"full {mount}/t".encode())
        check(False, "a trace on the mount itself begins")
    except OSError:
        check(os.listdir(f"{mount}/t") == [], "nothing is made")
    os.rmdir(f"{mount}/t")
    tracing.refused("trace", "start", mount, "-o", "/proc/none", code=3, says="cannot create /proc/none")
    tracing.refused("trace", "stop", mount, code=3, says="is not being traced")
    tracing.run("trace", "start", mount, "-o", directory)
    tracing.refused("trace", "start", mount, "-o", directory / "other", code=3, says="being traced to")
    tracing.run("trace", "stop", mount)
    tracing.refused("trace", "start", mount, "-o", directory, code=3, says="already exists")
    # All of the cluster or none.
    (directory / "some").mkdir()
    (directory / "some" / "h2.trace").write_text("")
    tracing.refused("trace", "start", *tracing.of_cluster, "-o", directory / "some", code=3, says="already exists")
    check(not (directory / "some" / "h1.trace").exists(), "the trace that had begun is gone")
    tracing.refused("trace", "stop", mount, code=3, says="is not being traced")

    trace = tracing.directory / "workflow" / "h1.trace"
    cut = directory / "cut.trace"
    cut.write_bytes(trace.read_bytes()[:-10])
    done = tracing.run("trace", "show", cut, expect=6)
    check("cut short" in done.stderr and "record" in done.stderr, done.stderr)
    done = tracing.run("trace", "workload", trace, cut, "-o", directory / "w.json", expect=6)
    check("not the whole run" in done.stderr, done.stderr)
    check("not the whole run" in json.loads((directory / "w.json").read_text())["description"], "the workload says so")
    cut.write_bytes(trace.read_bytes().replace(b"mosa-trace 1", b"mosa-trace 7", 1))
    tracing.refused("trace", "show", cut, code=2, says="a trace of version 7")
    tracing.refused("trace", "show", PLATFORM, code=2, says="not a trace")


def test_signals(tracing):
    """A `trace run` that is told to end passes that on, and leaves no trace on."""
    mount = tracing.store.mount("h1")
    directory = tracing.directory / "signals"
    words = [tracing.mosa, "trace", "run", "--mount", mount, "-o", directory, "--", "sleep", "60"]
    with subprocess.Popen(words) as run:
        wait_until(lambda: json.loads(os.getxattr(mount, "user.mosa.trace"))["tracing"], 10, "the trace")
        run.send_signal(signal.SIGTERM)
        check(run.wait(20) == 128 + signal.SIGTERM, f"ended with {run.returncode}")
    check(not json.loads(os.getxattr(mount, "user.mosa.trace"))["tracing"], "the trace is off")
    tracing.run("trace", "show", directory / "h1.trace")


def test_full_disk(tracing):
    """The mount goes on when there is no room for its trace; the trace says where it ends."""
    room = tracing.directory / "room"
    room.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", room], check=True)
    try:
        mount = tracing.store.mount("h1")
        tracing.run("trace", "start", mount, "-o", room)
        content = os.urandom(8 << 20)
        target = pathlib.Path(mount) / "much"

        def ended():
            with open(target, "wb") as file:
                for at in range(0, len(content), 4096):
                    os.pwrite(file.fileno(), content[at:at + 4096], at)
            return not json.loads(os.getxattr(mount, "user.mosa.trace"))["tracing"]

        wait_until(ended, 60, "the end of the trace")
        check(target.read_bytes() == content, "the mount goes on")
        done = tracing.run("trace", "stop", mount, expect=6)
        check("No space left" in done.stderr, done.stderr)
        done = tracing.run("trace", "show", room / "h1.trace", expect=6)
        check("No space left" in done.stderr and "after record" in done.stderr, done.stderr)
    finally:
        subprocess.run(["umount", room], check=True)


def test_killed(tracing):
    """The trace of a mount that is killed is good up to its last block."""
    directory = tracing.directory / "killed"
    tracing.run("trace", "start", tracing.store.mount("h2"), "-o", directory)
    tracing.on("h2", "cd $MOSA_MOUNT && echo killed > killed", task="before")
    wait_until(lambda: json.loads(os.getxattr(tracing.store.mount("h2"), "user.mosa.trace"))["records"] > 3, 10, "records")
    os.kill(tracing.store.pid("mount", "h2"), signal.SIGKILL)
    done = tracing.run("trace", "show", directory / "h2.trace", expect=6)
    check("was killed" in done.stderr and "before" in done.stdout, done.stderr)


def test(arguments):
    with cluster.Cluster(arguments.bin, 2, ram="256M") as store, tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        tracing = Tracing(store, directory)
        output, operations = test_workflow(tracing)
        test_prediction(tracing, output, operations)
        test_tasks(tracing)
        test_light(tracing)
        test_cold(tracing)
        test_made_anew(tracing)
        test_refusals(tracing)
        test_signals(tracing)
        test_full_disk(tracing)
        test_killed(tracing)


if __name__ == "__main__":
    cluster.main(test, limit_s=150, description=__doc__)
