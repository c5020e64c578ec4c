"""`mosa run` with streams: tasks that read what other tasks are still writing."""

import subprocess
import tempfile
import time

import cluster
from cluster import check
from run_test import Runner, by_id, hint, ran


def check_overlap(runner):
    """A task that reads a stream runs beside its writer; an unaware run has no streams."""
    runner.write("streams", """tasks:
  - {id: make, command: "for i in 1 2 3 4 5 6; do seq 20000; sleep 0.3; done > lines; echo x > whole", outputs: [lines, whole]}
  - {id: sum, command: "cksum < lines > sum; date +%s.%N > ended", inputs: [lines], outputs: [sum, ended]}
  - {id: first, command: "head -n 1 lines > first", inputs: [lines], outputs: [first]}
  - {id: last, command: "cat sum first whole > last", inputs: [sum, first, whole], outputs: [last]}
files:
  lines: {stream: append}
""")
    record, _ = runner.run("streams")
    tasks = by_id(record)
    for name in ("sum", "first"):
        check(tasks[name]["start"] < tasks["make"]["start"] + 1 < tasks["make"]["end"], f"{name} waited for its writer: {tasks}")
        check(tasks[name]["inputs"][0]["size_bytes"] == 6 * 108894, f"{name} has other inputs: {tasks[name]}")
    check(tasks["sum"]["end"] < tasks["make"]["end"] + 1, "the sum came late")
    expected = subprocess.run("for i in 1 2 3 4 5 6; do seq 20000; done | cksum", shell=True, capture_output=True, text=True,
                              check=True).stdout
    check(runner.path("streams", "sum").read_text() == expected, "the sum of a stream is wrong")
    check(runner.path("streams", "last").read_text() == expected + "1\nx\n", "the last task")
    record, _ = runner.run("streams", "--resume")
    check(not ran(record), f"an unchanged run ran {ran(record)} again")
    record, _ = runner.run("streams", "--system", "dss")
    tasks = by_id(record)
    check(tasks["sum"]["start"] >= tasks["make"]["end"], "an unaware run streams")


def check_failing_writer(runner):
    """The writer fails once, in its middle, when its readers have read half and one has ended; then for good."""
    runner.write("broken", """tasks:
  - {id: make, command: "seq 1000 > lines; sleep 1; test -e tried || { touch tried; exit 1; }; seq 1000 >> lines", outputs: [lines]}
  - {id: sum, command: "cksum < lines > sum", inputs: [lines], outputs: [sum]}
  - {id: first, command: "head -n 1 lines > first", inputs: [lines], outputs: [first]}
  - {id: last, command: "cat sum first > last", inputs: [sum, first], outputs: [last]}
files:
  lines: {stream: append}
""")
    record, said = runner.run("broken")
    tasks = by_id(record)
    check([len(tasks[name]["attempts"]) for name in ("make", "sum", "first", "last")] == [2, 2, 2, 1], f"{tasks}")
    expected = subprocess.run("{ seq 1000; seq 1000; } | cksum", shell=True, capture_output=True, text=True, check=True).stdout
    check(runner.path("broken", "sum").read_text() == expected, f"the sum after a failed writer: {said}")
    runner.write("hopeless", """tasks:
  - {id: make, command: "seq 1000 > lines; sleep 0.5; exit 1", outputs: [lines]}
  - {id: sum, command: "cksum < lines > sum", inputs: [lines], outputs: [sum]}
files:
  lines: {stream: append}
""")
    record, said = runner.run("hopeless", "--retries", "1", expect=3)
    check("task 'make' (line 2) failed 2 times" in said, said)
    check(by_id(record)["sum"]["state"] in ("not run", "interrupted"), f"{by_id(record)['sum']}")


def check_other_writers(runner):
    """A task reads what it writes itself; another writes to another name and renames; a stream has its own directory."""
    runner.write("itself", """tasks:
  - {id: make, command: "seq 1000 > d/lines; wc -l < d/lines > count", outputs: [d/lines, count]}
  - {id: sum, command: "cksum < d/lines > sum", inputs: [d/lines], outputs: [sum]}
  - {id: moved, command: "sleep 0.5; seq 2000 > temporary; mv temporary renamed", outputs: [renamed]}
  - {id: late, command: "cat renamed | cksum > late", inputs: [renamed], outputs: [late]}
files:
  d/lines: {stream: append}
  renamed: {stream: append}
""")
    runner.run("itself")
    check(runner.path("itself", "count").read_text() == "1000\n", "a task that reads its own stream")
    for name, lines in (("sum", 1000), ("late", 2000)):
        expected = subprocess.run(["sh", "-c", f"seq {lines} | cksum"], capture_output=True, text=True, check=True).stdout
        check(runner.path("itself", name).read_text() == expected, f"{name} is {runner.path('itself', name).read_text()}")
    check(hint(runner.path("itself", "d"), "stream") is None, "a whole directory is streams")


def check_refusals(runner):
    """What is no stream, or no possible one."""
    for text, code, sentence in (
            ("tasks:\n  - {id: a, command: x, outputs: [d/]}\nfiles:\n  d/: {stream: append}\n", 2,
             "file 'd/' (line 4) is a directory: only a file can be a stream"),
            ("tasks:\n  - {id: a, command: x, outputs: [f]}\nfiles:\n  f: {stream: tail}\n", 2,
             "the mount does not take the hint stream=tail"),
            ("tasks:\n  - {id: a, command: x, inputs: [g], outputs: [f]}\n  - {id: b, command: x, inputs: [f], outputs: [g]}\n"
             "files:\n  f: {stream: append}\n  g: {stream: append}\n", 2, "tasks wait for each other in a cycle")):
        runner.write("bad", text)
        _, said = runner.run("bad", expect=code)
        check(sentence in said, f"{said} does not say: {sentence}")


def test(arguments):
    with cluster.Cluster(arguments.bin, 3, ram="256M", rate="400mbit") as store, tempfile.TemporaryDirectory() as directory:
        runner = Runner(store, directory)
        for part in (check_overlap, check_failing_writer, check_other_writers, check_refusals):
            begin = time.monotonic()
            part(runner)
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    cluster.main(test, description=__doc__)
