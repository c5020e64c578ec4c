"""Traces that are written become tables and workloads, and those predictions, on the command line; what is not whole or no
trace is one sentence and an exit code. (tests/netns/trace_test.py traces real programs.)

    trace_workload_test.py --mosa PROGRAM
"""

import argparse
import json
import pathlib
import sys
import tempfile

from predict_test import HERE, PLATFORM, check, good, run

SEEDS = HERE.parents[1] / "predictor" / "trace" / "fuzz_seeds"
RECORD = {
    "version": 1, "workflow": {"name": "words", "path": "words.yaml"}, "tasks": [
        {"id": "make", "stage": "make", "state": "done", "command": ["seq", "9"], "host": "h1", "start": 10.0, "end": 10.5,
         "inputs": [{"path": "/etc/outside", "size_bytes": 7}], "outputs": [{"path": "n", "size_bytes": 18}], "attempts": [{}]},
        {"id": "sort", "stage": "sort", "state": "done", "command": ["sort"], "host": "h2", "start": 10.5, "end": 11.75,
         "inputs": [{"path": "n", "size_bytes": 18}], "outputs": [{"path": "s", "size_bytes": 18}], "attempts": [{}]},
    ]}


def test_show(mosa):
    rows = json.loads(good(mosa, "--json", "trace", "show", SEEDS / "two_tasks").stdout)["rows"]
    got = {(r["task"], r["path"]): (r["bytes_read"], r["bytes_written"], r["estimated"]) for r in rows}
    check(got == {("sort.41", "dir/in"): (262144, 0, False), ("sort.41", "dir/out"): (0, 5000, False),
                  ("sort", "dir/out"): (5000, 0, True)}, f"{got}")
    table = good(mosa, "trace", "show", SEEDS / "two_tasks").stdout
    check("sort.41\tdir/in\t1\t2\t256.0 KiB" in table and "~4.9 KiB" in table, table)


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
    check(done.returncode == 2 and "no file of operations" in done.stderr and not done.stdout, done.stderr)
    words[words.index(output)] = "synthetic:reduce,small"
    done = run(mosa, *words, "--operations", made["operations"])
    check(done.returncode == 2 and "operations of their own" in done.stderr and not done.stdout, done.stderr)


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
    refused(mosa, ["--record", record, "-o", output], 2, "task 'make' is 'failed': only a run that is done")
    without = json.loads(json.dumps(RECORD))
    without["tasks"][0]["command"] = []
    record.write_text(json.dumps(without))
    refused(mosa, ["--record", record, "-o", output], 2, "task 'make' has no command")
    record.write_text(json.dumps(RECORD).replace('"version": 1', '"version": 9'))
    refused(mosa, ["--record", record, "-o", output], 2, "record of version 9")
    record.write_text("{}")
    refused(mosa, ["--record", record, "-o", output], 2, "is no record of a run")


def refused(mosa, words, code, expected):
    done = run(mosa, "trace", "workload", *words)
    check(done.returncode == code, f"{words} ended with {done.returncode}: {done.stderr}")
    check(done.stderr.count("\n") == 1 and expected in done.stderr, f"expected '{expected}': {done.stderr}")


def test_bad_input(mosa, directory):
    output = directory / "bad.json"
    refused(mosa, ["-o", output], 2, "give traces, or --record")
    refused(mosa, [directory / "missing", "-o", output], 3, "cannot read")
    refused(mosa, [PLATFORM, "-o", output], 2, "it is no trace of a Mosa mount")
    whole = SEEDS / "two_tasks"
    refused(mosa, [whole, whole, "-o", output], 2, "is given twice")
    refused(mosa, [SEEDS / "cut_in_head", "-o", output], 3, "no task of the trace has read or written")
    refused(mosa, [whole, "-o", "/nonexistent/w.json"], 3, "cannot write /nonexistent/w.json")
    other = directory / "other.trace"
    other.write_bytes(whole.read_bytes().replace(b"mosa-trace 1", b"mosa-trace 2", 1))
    refused(mosa, [other, "-o", output], 2, "a trace of version 2, only 1 is read")
    check(not output.exists(), "nothing was written")
    for words, expected in ((["ended_early"], "ends behind record 5: its file could not be written any further"),
                            (["cut_in_block"], "cut short or damaged behind record 0 of 16")):
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
        test_workload(mosa, directory)
        test_record(mosa, directory)
        test_bad_input(mosa, directory)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
