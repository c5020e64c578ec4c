"""Traces that are written become tables and workloads, and those predictions, on the command line; what is not whole or no
trace is one sentence and an exit code. (tests/netns/trace_test.py traces real programs.)

    trace_workload_test.py --mosa PROGRAM
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile

from predict_test import HERE, PLATFORM, check, good, run

SEEDS = HERE.parent / "fuzz" / "seeds" / "trace"
RECORD = {
    "version": 1, "workflow": {"name": "words", "path": "words.yaml"}, "system": "wass", "start": 10.0,
    "hosts": [{"name": "h1", "slots": 1}, {"name": "h2", "slots": 1}], "tasks": [
        {"id": "make", "stage": "make", "state": "done", "command": ["seq", "9"], "digest": "",
         "inputs": [{"path": "/etc/outside", "size_bytes": 7}], "outputs": [{"path": "n", "size_bytes": 18}],
         "attempts": [{"host": "h1", "start": 10.0, "end": 10.5}]},
        {"id": "sort", "stage": "sort", "state": "done", "command": ["sort"], "digest": "",
         "inputs": [{"path": "n", "size_bytes": 18}], "outputs": [{"path": "s", "size_bytes": 18}],
         "attempts": [{"host": "h2", "start": 10.5, "end": 11.75}]},
    ]}


def test_show(mosa):
    rows = json.loads(good(mosa, "--json", "trace", "show", SEEDS / "two_tasks").stdout)["rows"]
    got = {(r["task"], r["path"]): (r["bytes_read"], r["bytes_written"], r["estimated"]) for r in rows}
    check(got == {("sort.41", "dir/in"): (262144, 0, False), ("sort.41", "dir/out"): (0, 5000, False),
                  ("sort", "dir/out"): (5000, 0, True)}, f"{got}")
    table = good(mosa, "trace", "show", SEEDS / "two_tasks").stdout
    check("sort.41\tdir/in\t1\t2\t256.0 KiB" in table and "~4.9 KiB" in table, table)


def expect_valid(document, version):
    """The rules of WfFormat's schema, and those that its validator checks besides."""
    def each(items, required):
        check(all(required <= item.keys() for item in items), f"{required} in {items}")
        return items

    check({"name", "schemaVersion", "workflow"} <= document.keys() and document["name"], f"{document.keys()}")
    check(document["schemaVersion"] == version and document.get("description", "_"), "WfFormat's head")
    specification, execution = document["workflow"]["specification"], document["workflow"]["execution"]
    tasks = each(specification["tasks"], {"name", "id", "parents", "children"})
    files = each(specification["files"], {"id", "sizeInBytes"})
    ids = [task["id"] for task in tasks]
    paths = [file["id"] for file in files]
    check(len(set(ids)) == len(ids) > 0 and len(set(paths)) == len(paths), f"ids are unique: {ids} {paths}")
    task_id = r"[0-9a-zA-Z_.#-]+" if version == "1.5" else r"[0-9a-zA-Z_.#:/-]+"
    check(all(re.fullmatch(task_id, id) for id in ids), f"{ids}")
    check(all(re.fullmatch(r"[0-9a-zA-Z_./:#-]+", path) for path in paths), f"{paths}")
    check(all(isinstance(file["sizeInBytes"], int) and file["sizeInBytes"] >= 0 for file in files), f"{files}")
    used = [path for task in tasks for path in task["inputFiles"] + task["outputFiles"]]
    check(set(used) == set(paths), f"all files are declared and used: {used} {paths}")
    for one, other in (("parents", "children"), ("children", "parents")):
        for task in tasks:
            for id in task[one]:
                check(id in ids and task["id"] in tasks[ids.index(id)][other], f"both ends of {task['id']} and {id}")

    check({"makespanInSeconds", "executedAt", "tasks"} <= execution.keys(), f"{execution.keys()}")
    runs = each(execution["tasks"], {"id", "runtimeInSeconds"})
    check([task["id"] for task in runs] == ids, "each task was executed")
    for date in [execution["executedAt"]] + [task["executedAt"] for task in runs]:
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", date), date)
    check(all(task["command"]["program"] and all(task["command"]["arguments"]) for task in runs), "no word is empty")
    machines = [machine["nodeName"] for machine in execution["machines"]]
    check(set(machines) == {name for task in runs for name in task["machines"]} != set(), f"{machines}")
    check(("metrics" in specification, "metrics" in execution) == (version == "1.6",) * 2, "metrics are of 1.6")
    if version == "1.6":
        level = {}
        while len(level) < len(tasks):
            level.update({task["id"]: 1 + max((level[id] for id in task["parents"]), default=-1) for task in tasks
                          if all(id in level for id in task["parents"])})
        widths = [list(level.values()).count(each) for each in range(max(level.values()) + 1)]
        check(specification["metrics"] == {
            "numberOfTasks": len(tasks), "numberOfFiles": len(files), "sumOfFileSizesInBytes": sum(f["sizeInBytes"] for f in files),
            "numberOfLevels": len(widths), "minimumWidth": min(widths), "maximumWidth": max(widths)}, f"{specification['metrics']}")
        check(execution["metrics"] == {
            "sumTaskRuntimesInSeconds": sum(run["runtimeInSeconds"] for run in runs),
            "totalNumBytesRead": sum(run.get("readBytes", 0) for run in runs),
            "totalNumBytesWritten": sum(run.get("writtenBytes", 0) for run in runs)}, f"{execution['metrics']}")


def test_wfformat(mosa, directory):
    record = directory / "record.json"
    record.write_text(json.dumps(RECORD))
    output = directory / "any.json"
    for version in ("1.5", "1.6"):
        for words in ([SEEDS / "two_tasks"], [SEEDS / "taken_apart"], ["--record", record]):
            made = json.loads(good(mosa, "--json", "trace", "workload", *words, "--wfformat", version, "-o", output).stdout)
            check(made["wfformat"] == version and made["strict"], f"{made}")
            expect_valid(json.loads(output.read_text()), version)
    execution = json.loads(output.read_text())["workflow"]["execution"]
    check(execution["makespanInSeconds"] == 1.75 and execution["executedAt"] == "1970-01-01T00:00:10.000Z", f"{execution}")
    check(execution["tasks"][1]["executedAt"] == "1970-01-01T00:00:10.500Z", f"{execution}")
    record.write_text(json.dumps(RECORD).replace('"path": "s"', '"path": "two words"'))
    done = run(mosa, "trace", "workload", "--record", record, "-o", output)
    check(done.returncode == 0 and "file 'two words' has other characters; other programs may refuse" in done.stderr, done.stderr)
    refused(mosa, ["--record", record, "--wfformat", "1.7", "-o", output], 2, "1.7")


def test_workload(mosa, directory):
    output = directory / "two.json"
    made = json.loads(good(mosa, "--json", "trace", "workload", SEEDS / "two_tasks", "-o", output).stdout)
    check(made["tasks"] == 2 and made["whole"] and made["operations"].endswith("two.operations.json"), f"{made}")
    workflow = json.loads(output.read_text())
    check(workflow["schemaVersion"] == "1.5", "WfFormat")
    second = workflow["workflow"]["specification"]["tasks"][1]
    check(second["parents"] == ["sort.41"] and second["inputFiles"] == ["dir/out"], f"{second}")
    # On one host: between hosts the kernel reads on behind the part, to this small file's end.
    words = ["--json", "predict", "--platform", PLATFORM, "--workload", output, "--config", "hosts=1", "--repeats", 0]

    def read(*more):
        task = json.loads(good(mosa, *words, *more).stdout)["tasks"][0]
        return task["bytes_read_local"] + task["bytes_read_remote"] + task["bytes_read_cached"]

    check(read() == 300000 and read("--operations", made["operations"]) == 262144, "parts of files are read as parts")
    plain, played = (json.loads(good(mosa, *words, *more).stdout)["tasks"][0]
                     for more in ((), ("--operations", made["operations"])))
    check(plain["compute_s"] > played["compute_s"] > 0, f"operations are played: {plain} {played}")
    done = run(mosa, *words, "--operations", PLATFORM)
    check(done.returncode == 2 and "not a file of operations" in done.stderr and not done.stdout, done.stderr)
    words[words.index(output)] = "synthetic:reduce,small"
    done = run(mosa, *words, "--operations", made["operations"])
    check(done.returncode == 2 and "says by itself what its tasks do" in done.stderr and not done.stdout, done.stderr)


def test_record(mosa, directory):
    record = directory / "record.json"
    record.write_text(json.dumps(RECORD))
    output = directory / "words.json"
    made = json.loads(good(mosa, "--json", "trace", "workload", "--record", record, "-o", output).stdout)
    check(made["tasks"] == 2 and made["operations"] is None, f"{made}")
    execution = json.loads(output.read_text())["workflow"]["execution"]["tasks"]
    check([t["runtimeInSeconds"] for t in execution] == [0.5, 1.25], f"{execution}")
    check(execution[0]["command"] == {"program": "seq", "arguments": ["9"]}, f"{execution[0]}")
    good(mosa, "predict", "--platform", PLATFORM, "--workload", output, "--config", "hosts=2", "--repeats", 0)
    record.write_text(json.dumps(RECORD).replace('"done"', '"failed"', 1))
    refused(mosa, ["--record", record, "-o", output], 2, "task 'make' is 'failed', but a workload is made only")
    without = json.loads(json.dumps(RECORD))
    without["tasks"][0]["command"] = []
    record.write_text(json.dumps(without))
    refused(mosa, ["--record", record, "-o", output], 2, "task 'make' has no command")
    impossible = json.loads(json.dumps(RECORD))
    impossible["tasks"][0]["outputs"][0]["size_bytes"] = -1
    record.write_text(json.dumps(impossible))
    refused(mosa, ["--record", record, "-o", output], 2, "of task 'make' has a size that no file can have")
    record.write_text(json.dumps(RECORD).replace('"version": 1', '"version": 9'))
    refused(mosa, ["--record", record, "-o", output], 2, "record of version 9")
    record.write_text("{}")
    refused(mosa, ["--record", record, "-o", output], 2, "is not a complete record of a run")


def refused(mosa, words, code, expected):
    done = run(mosa, "trace", "workload", *words)
    check(done.returncode == code, f"{words} ended with {done.returncode}: {done.stderr}")
    check(done.stderr.count("\n") == 1 and expected in done.stderr, f"expected '{expected}': {done.stderr}")


def test_bad_input(mosa, directory):
    output = directory / "bad.json"
    refused(mosa, ["-o", output], 2, "give traces, or --record")
    refused(mosa, [directory / "missing", "-o", output], 3, "cannot read")
    refused(mosa, [PLATFORM, "-o", output], 2, "it is not a trace of a Mosa mount")
    whole = SEEDS / "two_tasks"
    refused(mosa, [whole, whole, "-o", output], 2, "is given twice")
    refused(mosa, [SEEDS / "cut_in_head", "-o", output], 3, "no task of the trace has read or written")
    refused(mosa, [whole, "-o", "/nonexistent/w.json"], 3, "cannot write /nonexistent/w.json")
    other = directory / "other.trace"
    other.write_bytes(whole.read_bytes().replace(b"mosa-trace 1", b"mosa-trace 2", 1))
    refused(mosa, [other, "-o", output], 2, "a trace of version 2, but this program reads only version 1")
    check(not output.exists(), "nothing was written")
    for words, expected in ((["ended_early"], "ends after record 5: its file could not be written any further"),
                            (["cut_in_block"], "cut short or damaged after record 0 of 16")):
        done = run(mosa, "trace", "show", *[SEEDS / word for word in words])
        check(done.returncode == 6 and expected in done.stderr, f"{words}: {done.returncode} {done.stderr}")
    done = run(mosa, "trace", "workload", SEEDS / "ended_early", "-o", output)
    check(done.returncode == 6 and "not the whole run" in done.stderr, done.stderr)
    check("not the whole run" in json.loads(output.read_text())["description"], "the workload says so itself")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mosa", required=True)
    mosa = parser.parse_args().mosa
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        test_show(mosa)
        test_wfformat(mosa, directory)
        test_workload(mosa, directory)
        test_record(mosa, directory)
        test_bad_input(mosa, directory)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
