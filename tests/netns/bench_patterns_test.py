"""`mosa bench patterns` on a real cluster: five patterns on four systems give JSON that adds up; hints keep bytes off the
links; a wrong byte fails the run by name; an interrupted benchmark goes on; nothing is left behind.
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

HOSTS = 4
SCALE = 0.01
# Bytes that the tasks of each stage read and write, of Table 2's medium sizes: Opportunity Study, Table 2.
IN, MIDDLE, OUT = int(100e6 * SCALE), int(200e6 * SCALE), int(1e6 * SCALE)
PART, ALL = int(10e6 * SCALE), int(200e6 * SCALE)
REGION = (IN + 4095) // 4096 * 4096
MOVED = {
    "pipeline": {"stage-in": (0, IN), "stage-1": (IN, MIDDLE), "stage-2": (MIDDLE, MIDDLE), "stage-3": (MIDDLE, OUT)},
    "reduce": {"write": (0, PART), "reduce": (HOSTS * PART, ALL)},
    "broadcast": {"write": (0, IN), "read": (IN, OUT)},
    "scatter": {"write": (0, HOSTS * REGION), "read": (REGION, 0)},
    "gather": {"write": (0, REGION), "read": (HOSTS * REGION, 0)},
}
ONE_TASK = {("reduce", "reduce"), ("broadcast", "write"), ("scatter", "write"), ("gather", "read")}


class Bench:
    def __init__(self, store, directory):
        self.store = store
        self.directory = pathlib.Path(directory)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("MOSA_")}
        self.program = str(store.binaries.resolve() / "mosa")

    def command(self, out, *flags, of_cluster=True):
        where = ["--cluster", self.store.name, "--dir", str(self.store.directory)] if of_cluster else []
        return [self.program, "bench", "patterns", *where, "--output", f"{out}.json", *flags]

    def run(self, out, *flags, expect=0, of_cluster=True, limit_s=100):
        done = subprocess.run(self.command(out, *flags, of_cluster=of_cluster), cwd=self.directory, env=self.environment,
                              text=True, capture_output=True, timeout=limit_s, check=False)
        check(done.returncode == expect,
              f"bench {out} {flags} ended with {done.returncode}, not {expect}: {done.stderr.strip()}")
        return self.results(out), done

    def results(self, out):
        path = self.directory / f"{out}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def check_nothing_is_left(self):
        for host in self.store.hosts:
            left = [name for name in os.listdir(self.store.mount(host)) if "bench" in name]
            check(not left, f"left on {host}: {left}")
        check(not list(self.directory.glob("*.run")), "records of runs are left")
        check(not list(pathlib.Path("/dev/shm").glob("bench-test-*")), "files of local runs are left")


def by_name(results):
    return {(cell["pattern"], cell["system"]): cell for cell in results["cells"]}


def check_amounts(cell, run):
    for stage in run["tasks_by_stage"]:
        read, written = MOVED[cell["pattern"]][stage["stage"]]
        tasks = 1 if (cell["pattern"], stage["stage"]) in ONE_TASK else HOSTS
        have = (stage["tasks"], stage["read_bytes"], stage["written_bytes"])
        check(have == (tasks, tasks * read, tasks * written), f"{cell['system']}: {stage}")
        check(sum(own.get("tasks", 0) for own in stage["hosts"].values()) == tasks, f"{stage}")
    check([stage["stage"] for stage in run["tasks_by_stage"]] == list(MOVED[cell["pattern"]]), f"{run}")
    check(run["stages"]["seconds"] > 0, f"{run}")


def check_all(bench):
    backend = bench.directory / "disk"
    backend.mkdir()
    flags = ["--sizes", "medium", "--scale", str(SCALE), "--repeats", "2..2", "--replicas", "1,N", "--map",
             "--systems", f"dss,wass,local,path=disk:{backend}", "--workdir", f"bench-test-{os.getpid()}"]
    results, done = bench.run("all", *flags)
    cells = by_name(results)
    expected = {(pattern, system) for pattern in MOVED for system in ("dss", "wass", "disk")} | {("pipeline", "local")}
    expected = expected - {("broadcast", "wass")} | {("broadcast", "wass-1"), ("broadcast", f"wass-{HOSTS}")}
    check(set(cells) == expected, f"cells: {set(cells) ^ expected}")
    check(results["outcome"] == "done", results["outcome"])
    for (pattern, system), cell in cells.items():
        check(len(cell["runs"]) == 2, f"{pattern} {system}: {len(cell['runs'])} runs")
        for run in cell["runs"]:
            check_amounts(cell, run)
        check(cell["seconds"]["stages"]["count"] == 2 and cell["seconds"]["stages"]["half_width"] >= 0, f"{cell}")
        check(system == "dss" or cell["speedup_over"]["dss"]["count"] == 2, f"{pattern} {system} has no ratio")
        row = next(line.split("\t") for line in done.stdout.splitlines() if line.startswith(f"{pattern}\tmedium\t{system}\t"))
        check(len(row) == 16 and row[3].startswith("2"), f"{row}")

    def network(pattern, system):
        return max(run["stages"]["network_bytes"] for run in cells[pattern, system]["runs"])

    pipelines = HOSTS * (IN + 4 * MIDDLE + OUT)
    # A host keeps the pages that it has written, but writes three quarters of them to other nodes. Which these are is
    # decided for each of sixteen chunks: how many stay at home differs from run to run.
    striped = (HOSTS - 1) * (2 * MIDDLE + OUT)
    check(network("pipeline", "dss") > striped * 0.6, f"dss moved {network('pipeline', 'dss')}: not striped?")
    check(network("pipeline", "wass") < pipelines / 8, f"pipelines under wass moved {network('pipeline', 'wass')}")
    check(network("pipeline", "local") < pipelines / 8, f"local pipelines moved {network('pipeline', 'local')}")
    check(network("reduce", "wass") < network("reduce", "dss") * 0.6, "reduce under wass moved as much as under dss")
    check(network("gather", "wass") < network("gather", "dss") * 0.8, "gather's regions were not written where they lie")
    # Over links the kernel reads ahead besides, behind the regions' ends. One host has written its own.
    local = [run["stages"]["by_path"]["bytes_read_local"] for run in cells["scatter", "wass"]["runs"]]
    check(min(local) >= (HOSTS - 1) * REGION, f"scatter's regions were not read where they lie, but {local} bytes of them")
    stages = {stage["stage"]: stage["hosts"] for stage in cells["pipeline", "wass"]["runs"][-1]["tasks_by_stage"]}
    for own in stages["stage-2"].values():
        check(own["stored_bytes"] == own["tasks"] * MIDDLE, f"a file lies elsewhere than its task: {stages}")
    check("pipeline medium wass: tasks by host, and each host's share of the bytes that the stage wrote" in done.stdout, done.stdout)
    bench.check_nothing_is_left()
    again, _ = bench.run("all", *flags)
    check(again == results, "what was there was measured again")
    _, done = bench.run("all", *flags, "--seed", "7", expect=3)
    check("holds runs of another configuration (seed is 1 there and 7 here)" in done.stderr, done.stderr)


def check_staging(bench):
    backend = bench.directory / "backend"
    backend.mkdir()
    results, _ = bench.run("staged", "--patterns", "pipeline", "--sizes", "small", "--systems", "wass", "--repeats", "1",
                           "--stage-in", str(backend), "--stage-out", str(backend))
    cell = results["cells"][0]
    check(all(cell["seconds"][phase]["mean"] > 0 for phase in ("stage-in", "stages", "stage-out")), f"{cell['seconds']}")
    sizes = {path.name: path.stat().st_size for path in backend.iterdir()}
    check(sizes == {"in": 100_000, **{f"out-{k}": 10_000 for k in range(HOSTS)}}, f"the backend has {sizes}")


def check_wrong_bytes(bench):
    """What is read is compared: on another host, and in the middle of a run."""
    path = pathlib.Path(bench.store.mount("h1")) / "bytes"
    done = bench.store.exec("h1", bench.program, "bench", "work", "--seed", "5", f"write:x:0:3000000:{path}")
    check(done.returncode == 0 and json.loads(done.stdout)["written_bytes"] == 3_000_000, done.stderr)
    with open(pathlib.Path(bench.store.mount("h2")) / "bytes", "r+b") as file:
        file.seek(2_000_003)
        byte = file.read(1)
        file.seek(2_000_003)
        file.write(bytes([byte[0] ^ 4]))
    other = pathlib.Path(bench.store.mount("h3")) / "bytes"
    done = bench.store.exec("h3", bench.program, "bench", "work", "--seed", "5", f"read:x:0:3000000:{other}")
    check(done.returncode != 0 and f"{other} has wrong bytes at offset 2000000: expected 0x" in done.stderr, done.stderr)
    path.unlink()

    script = bench.directory / "spoil.sh"
    mounts = str(pathlib.Path(bench.store.mount("h1")).parent.parent / "{host}" / "mount")
    spoiled = mounts.replace("{host}", "h1") + "/mosa-bench/mid-1/0"
    script.write_text(f"""#!/bin/sh
[ -s {spoiled} ] && printf X | dd of={spoiled} bs=1 seek=1000 conv=notrunc 2>/dev/null
exec {bench.program} cluster exec --name {bench.store.name} --dir {bench.store.directory} "$1" -- sh -c "$2"
""", encoding="utf-8")
    script.chmod(0o755)
    _, done = bench.run("spoiled", "--mount", mounts, "--hosts", ",".join(bench.store.hosts), "--exec",
                        f"{script} {{host}}", "--patterns", "pipeline", "--sizes", "medium", "--scale", str(SCALE),
                        "--systems", "dss", expect=3, of_cluster=False)
    check("pipeline medium dss, run 1: task 'stage-2-0' on h" in done.stderr and
          "mid-1/0 has wrong bytes at offset 1000: expected 0x" in done.stderr, done.stderr)
    check(bench.results("spoiled")["outcome"] == "failed", "a spoiled run passed")
    for left in bench.directory.glob("spoiled.json.run/*"):
        check(left.name.startswith("stage"), f"{left}")
    subprocess.run(["rm", "-r", str(bench.directory / "spoiled.json.run")], check=True)
    bench.check_nothing_is_left()


def check_interrupt(bench):
    flags = ["--patterns", "reduce,gather", "--sizes", "medium", "--scale", str(SCALE), "--systems", "dss,wass"]

    def count():
        results = bench.results("stopped")
        return sum(len(cell["runs"]) for cell in results["cells"]) if results else 0

    process = subprocess.Popen(bench.command("stopped", *flags, "--repeats", "40..40"), cwd=bench.directory,
                               env=bench.environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    cluster.wait_until(lambda: count() >= 3, 40, "three runs")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[1]
    check(process.returncode == 130, f"Ctrl-C: {process.returncode} {said}")
    before = bench.results("stopped")
    check(before["outcome"] == "interrupted", before["outcome"])
    check("run the same command again to continue" in said, said)
    bench.check_nothing_is_left()
    after, _ = bench.run("stopped", *flags, "--repeats", "2..2")
    cells = by_name(after)
    check(after["outcome"] == "done" and len(cells) == 4, f"{after['outcome']}, {list(cells)}")
    for name, cell in by_name(before).items():
        check(cells[name]["runs"][:len(cell["runs"])] == cell["runs"], f"runs of {name} were not kept")
    check(all(len(cell["runs"]) >= 2 for cell in after["cells"]), "runs are missing")


def check_refusals(bench):
    mount = bench.store.mount("h1")
    precious = pathlib.Path(mount) / "precious"
    precious.mkdir()
    (precious / "file").write_text("x", encoding="utf-8")
    rows = [
        (["--scale", "0"], 2, "--scale 0: '0' is not a factor on the sizes of Table 2"),
        (["--systems", "path=nfs:/nowhere/{host}"], 3,
         "system 'nfs' is not mounted on host h1: there is no directory /nowhere/h1"),
        (["--sizes", "large"], 4, "but the files of one run take"),
        (["--replicas", "5"], 2, "--replicas 5: give 1 to 4 (the number of hosts)"),
        (["--workdir", "precious"], 3, "is not empty: remove it if a killed benchmark left it"),
        (["--workdir", ".."], 2, "--workdir '..': give the name of a directory"),
        (["--width", "5000"], 2, "--width 5000: at most 1000 pipelines"),
        (["--stage-in", "/nowhere"], 3, "--stage-in /nowhere: no such directory"),
        (["--hosts", "h9"], 2, "--hosts and --exec need --mount"),
    ]
    for flags, code, sentence in rows:
        results, done = bench.run("refused", *flags, expect=code)
        check(sentence in done.stderr, f"{flags}: {done.stderr} does not say: {sentence}")
        check(results is None, f"{flags}: something was measured")
    check((precious / "file").read_text(encoding="utf-8") == "x", "somebody else's file is gone")


def test(arguments):
    with cluster.Cluster(arguments.bin, HOSTS, ram="256M", rate="400mbit") as store, \
            tempfile.TemporaryDirectory() as directory:
        bench = Bench(store, directory)
        for part in (check_refusals, check_all, check_staging, check_wrong_bytes, check_interrupt):
            begin = time.monotonic()
            part(bench)
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
