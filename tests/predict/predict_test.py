"""What `mosa predict` promises on its command line: a table, JSON and a trace of the same run; bad input is one
sentence and an exit code.

    predict_test.py --mosa PROGRAM
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import chrome_trace

HERE = pathlib.Path(__file__).resolve().parent
PLATFORM = HERE / "platform_guess.json"
WORKLOAD = HERE / "pipeline.yaml"


def check(condition, text):
    if not condition:
        raise SystemExit(f"FAILED: {text}")


def run(mosa, *words):
    return subprocess.run([mosa, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


def good(mosa, *words):
    done = run(mosa, *words)
    check(done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr.strip()}")
    return done


def predict(mosa, *words):
    return json.loads(good(mosa, "--json", "predict", "--platform", PLATFORM, "--workload", WORKLOAD, *words).stdout)


def test_answers(mosa):
    answer = predict(mosa, "--config", "hosts=2")
    check(answer["failure"] is None, answer["failure"])
    check([s["name"] for s in answer["stages"]] == ["make", "turn", "join"], f"stages: {answer['stages']}")
    check(len(answer["tasks"]) == 5 and len(answer["hosts"]) == 2, "every task and host is listed")
    low, high = answer["turnaround_interval_s"]
    check(0.875 < low <= high < 60, f"interval {low} to {high}")
    check(low <= answer["turnaround_s"] <= high, f"{answer['turnaround_s']} lies in its interval {low} to {high}")
    check(answer["tasks"][2]["bytes_read_local"] == 40 << 20, "a pipeline reads where it wrote")
    check(answer["draws"] == 20 and answer["draws_failed"] == 0 and answer["draw_failure"] is None, f"{answer['draws']}")
    for stage in answer["stages"]:
        low, high = stage["interval_s"]
        check(low < stage["mean_s"] < high, f"{stage['name']}: {stage['mean_s']} of {low} to {high}")
    for way in ("bytes_sent", "bytes_received"):
        means = answer["links_mean"][way]
        check(len(means) == 2 and means == sorted(means, reverse=True), f"links from the busiest on: {means}")
    again = predict(mosa, "--config", "hosts=2")
    check(again == answer, "the same question has the same answer")
    dss = predict(mosa, "--config", "hosts=2,system=dss")
    check(dss["turnaround_s"] > answer["turnaround_s"], "hints help a pipeline")
    sent = sum(h["bytes_sent"] for h in dss["hosts"])
    check(sent == sum(h["bytes_received"] for h in dss["hosts"]) > 0, "what is sent is received")
    check(abs(answer["node_hours"] - 2 * answer["turnaround_s"] / 3600) < 1e-9, "two hosts are paid for")
    check(answer["energy_j"] is None and answer["energy_interval_j"] is None, "no powers, no energy")
    table = good(mosa, "predict", "--platform", PLATFORM, "--workload", WORKLOAD, "--repeats", 0).stdout
    check("STAGE" in table and "Turnaround" in table, table)


def test_unequal_hosts(mosa):
    equal = predict(mosa, "--config", "hosts=2,system=dss", "--repeats", 0)
    slow = predict(mosa, "--config", "hosts=2,system=dss,h2.link=8M,h2.speed=0.5", "--repeats", 0)
    check(slow["turnaround_s"] > 1.5 * equal["turnaround_s"], f"{slow['turnaround_s']} and {equal['turnaround_s']} s")
    said = slow["configuration"]
    check("h2.speed=0.5,h2.out=8388608,h2.in=8388608" in said, said)
    check(predict(mosa, "--config", said, "--repeats", 0) == slow, "what is said of a configuration reads back")


def test_energy(mosa, directory):
    power = pathlib.Path(directory) / "power.yaml"
    rest = "application_w: 30, storage_w: 35, network_w: 36"
    levels = [f"{{frequency_mhz: {mhz}, speed: {speed}, idle_w: {idle_w}, {rest}}}"
              for mhz, speed, idle_w in ((2400, 1, 90), (1200, 0.5, 80))]
    power.write_text("mosa_power: 1\nlevels:\n" + "".join(f"  - {level}\n" for level in levels))
    full = predict(mosa, "--config", "hosts=2", "--power", power)
    half = predict(mosa, "--config", "hosts=2", "--power", power, "--frequency", 1200)
    for answer, idle in ((full, 90), (half, 80)):
        hosts = answer["hosts"]
        busy = sum(30 * h["application_core_s"] / 2 + 35 * h["store_core_s"] / 2 + 36 * (h["sending_s"] + h["receiving_s"]) / 2
                   for h in hosts)
        check(abs(answer["energy_j"] - busy - 2 * idle * answer["turnaround_s"]) < 1e-6, f"{answer['energy_j']} J")
        low, high = answer["energy_interval_j"]
        check(low < answer["energy_j"] < high, f"{low} to {high}")
    check(half["turnaround_s"] > full["turnaround_s"] + 0.7, "computing takes twice as long at half the speed")
    table = good(mosa, "predict", "--platform", PLATFORM, "--workload", WORKLOAD, "--power", power).stdout
    check(" node-hours, " in table and " kJ (" in table, table)
    done = run(mosa, "predict", "--platform", PLATFORM, "--workload", WORKLOAD, "--power", power, "--frequency", 1800)
    check(done.returncode == 2 and "no level of 1800 MHz, only 2400, 1200" in done.stderr, done.stderr)


def traced(mosa, directory, *words):
    """What it predicts, and the trace of it."""
    path = pathlib.Path(directory) / "trace.json"
    workload = [] if "--workload" in words else ["--workload", WORKLOAD]
    answer = json.loads(good(mosa, "--json", "predict", "--platform", PLATFORM, *workload, "--trace", path, *words).stdout)
    return answer, chrome_trace.read(path.read_bytes())


def test_trace(mosa, directory):
    """The trace says of each task what the prediction says; its parts lie in it, one after the other."""
    path = pathlib.Path(directory)
    (path / "operations.json").write_text(json.dumps({"mosa_operations": 1, "tasks": [
        {"id": "make_1", "files": ["a.1"], "operations": ["250000000 w 0 0 1048576", "9000 w 0 1048576 5", "90000000 c"]}]}),
        encoding="utf-8")
    (path / "odd.yaml").write_text(
        "tasks:\n  - {id: 'a\"<\\é', command: 'true', outputs: [x], runtime: 0.1}\nfiles: {x: {size: 1M}}\n", encoding="utf-8")
    for words in (["--config", "hosts=2"], ["--config", "hosts=1,slots=1"], ["--config", "hosts=12,storage=3,manager=apart"],
                  ["--config", "hosts=1,store=64M"], ["--workload", "synthetic:gather,medium,scale=0.1", "--config", "hosts=4"],
                  ["--operations", path / "operations.json"], ["--workload", path / "odd.yaml"]):
        answer, trace = traced(mosa, directory, "--repeats", 0, *words)
        check(set(trace.processes.values()) == {h["name"] for h in answer["hosts"]}, f"processes: {trace.processes}")
        tasks = [s for s in trace.slices if s.args]
        parts = [s for s in trace.slices if not s.args]
        check(tasks and all(trace.threads[s.process, s.thread] == f"slot {s.thread}" for s in tasks), f"{trace.threads}")
        expected = sorted((t["id"], t["host"], round(t["start_s"] * 1e9), round(t["end_s"] * 1e9)) for t in answer["tasks"])
        found = sorted((s.name, trace.processes[s.process], s.begin_ns, s.end_ns) for s in tasks)
        check(found == expected, f"{words}: {found} and {expected}")
        for part in parts:
            check(part.name in ("launch", "read", "compute", "write") and part.end_ns > part.begin_ns, f"{part}")
            owner = [t for t in tasks if (t.process, t.thread) == (part.process, part.thread)
                     and t.begin_ns <= part.begin_ns and part.end_ns <= t.end_ns]
            check(len(owner) == 1 and owner[0].category == part.category, f"{part} lies in one task")
        for task in answer["tasks"]:
            computed = sum(p.end_ns - p.begin_ns for p in parts for t in tasks if t.name == task["id"] and p.name == "compute"
                           and (t.process, t.thread) == (p.process, p.thread) and t.begin_ns <= p.begin_ns < t.end_ns)
            check(computed == round(task["compute_s"] * 1e9), f"{task['id']} computes {computed} ns")


def test_malformed_traces(mosa, directory):
    """A parser that takes everything proves nothing."""
    _, good_trace = traced(mosa, directory, "--repeats", 0, "--config", "hosts=2")
    text = (pathlib.Path(directory) / "trace.json").read_text(encoding="utf-8")
    check(len(good_trace.slices) > 10, "a trace to spoil")

    def spoiled(change):
        root = json.loads(text)
        change(root, next(e for e in root["traceEvents"] if e["ph"] == "X" and "args" in e))
        return json.dumps(root).encode()

    rows = [
        (b"[]", "no traceEvents"),
        (text.encode()[:-3], "Expecting"),
        (text.encode().replace(b'"ts":', b'"ts":NaN,"was":', 1), "NaN is no JSON"),
        (text.encode("utf-16"), "codec can't decode"),
        (spoiled(lambda root, task: task.update(ph="Z")), "no slice and no metadata"),
        (spoiled(lambda root, task: task.pop("dur")), "dur is no number"),
        (spoiled(lambda root, task: task.update(dur=-1)), "dur is out of range"),
        (spoiled(lambda root, task: task.update(ts="1")), "ts is no number"),
        (spoiled(lambda root, task: task.update(ts=0.00033)), "not of whole nanoseconds"),
        (spoiled(lambda root, task: task.update(pid="h1")), "pid or tid is no whole number"),
        (spoiled(lambda root, task: task.update(pid=9)), "a process without a name"),
        (spoiled(lambda root, task: task.update(tid=99)), "a thread without a name"),
        (spoiled(lambda root, task: task.update(dur=task["dur"] // 2)), "overlaps another of its track in part"),
        (spoiled(lambda root, task: root["traceEvents"].append(root["traceEvents"][0])), "it is named twice"),
    ]
    for spoilt, expected in rows:
        try:
            chrome_trace.read(spoilt)
            check(False, f"'{expected}' was taken")
        except chrome_trace.Malformed as error:
            check(expected in str(error), f"'{expected}': {error}")


def test_residence(mosa, directory):
    """How long requests stay with each daemon: as `mosa residence` has it, and as daemons serve it."""
    answer = predict(mosa, "--config", "hosts=2,system=dss", "--residence", "--repeats", 0)
    blind = predict(mosa, "--config", "hosts=2,system=dss", "--repeats", 0)
    check("residence" not in blind and blind["digest"] == answer["digest"], "looking on changes nothing")
    daemons = {(d["component"], d["host"]): d["requests"] for d in answer["residence"]["daemons"]}
    check(set(daemons) == {("manager", "-"), ("storage", "h1"), ("storage", "h2"), ("mount", "h1"), ("mount", "h2")}, f"{set(daemons)}")
    reads = [r for r in daemons[("mount", "h1")] if r["class"] == "node.read"]
    served = [r for r in daemons[("storage", "h2")] if r["class"] == "read"]
    check([r["peer"] for r in reads] == ["h2"] and [r["peer"] for r in served] == ["h1"], f"{reads} {served}")
    check(reads[0]["count"] == served[0]["count"] > 0 and reads[0]["sum_ns"] >= served[0]["sum_ns"], f"{reads} {served}")
    check(sum(n for _, n in reads[0]["buckets"]) == reads[0]["count"] and reads[0]["p90_us"] >= reads[0]["p50_us"], f"{reads}")
    metrics = pathlib.Path(directory) / "metrics"
    metrics.mkdir()
    predict(mosa, "--config", "hosts=2,system=dss", "--repeats", 0, "--metrics", metrics)
    check(sorted(p.name for p in metrics.iterdir()) ==
          ["manager.prom", "mount-h1.prom", "mount-h2.prom", "storage-h1.prom", "storage-h2.prom"], f"{list(metrics.iterdir())}")
    text = (metrics / "mount-h1.prom").read_text(encoding="utf-8")
    check(f'mosa_mount_request_seconds_count{{class="node.read",peer="h2"}} {reads[0]["count"]}\n' in text, text)
    done = run(mosa, "predict", "--platform", PLATFORM, "--workload", WORKLOAD, "--metrics", metrics / "none", "--repeats", 0)
    check(done.returncode == 3 and "cannot write" in done.stderr, f"{done.returncode}: {done.stderr}")


def test_full_store(mosa):
    done = good(mosa, "--json", "predict", "--platform", PLATFORM, "--workload", WORKLOAD, "--config", "hosts=1,store=64M")
    answer = json.loads(done.stdout)
    check(" full: '" in answer["failure"] and " full: '" in done.stderr, f"{answer['failure']} / {done.stderr}")
    full = answer["full"]
    check(full["nodes"] == ["h1"], f"{full}")
    check(f"'{full['file']}'" in answer["failure"], f"{full}: {answer['failure']}")
    at = f"at {answer['failed_at_s']:.3f} s"
    check(at in answer["failure"] and 0 < answer["failed_at_s"] <= answer["turnaround_s"] < 60, f"{answer['failure']}")
    table = good(mosa, "predict", "--platform", PLATFORM, "--workload", WORKLOAD, "--config", "hosts=1,store=64M").stdout
    check(f"The run fails {at}" in table, table)


def test_model_spread(mosa, directory):
    """An interval holds what the model is off by, the mean does not; all configurations are off alike."""
    answers = {}
    moving = pathlib.Path(directory) / "moving.yaml"  # Which computes nothing.
    moving.write_text(re.sub(r", runtime: [0-9.]+", "", WORKLOAD.read_text(encoding="utf-8")), encoding="utf-8")
    for spread in (0, 0.06, 0.3):
        path = pathlib.Path(directory) / f"platform-{spread}.json"
        platform = json.loads(PLATFORM.read_text())
        platform["model"]["spread"] = spread
        path.write_text(json.dumps(platform))
        words = ["--json", "predict", "--platform", path, "--workload", moving, "--config", "hosts=2", "--repeats", 99]
        answers[spread] = json.loads(good(mosa, *words).stdout)
    widths = {s: a["turnaround_interval_s"][1] / a["turnaround_interval_s"][0] for s, a in answers.items()}
    check(widths[0] < widths[0.06] < widths[0.3], f"{widths}")
    check(math.exp(2 * 1.4 * 0.3) < widths[0.3] < math.exp(2 * 2.2 * 0.3), f"{widths[0.3]}")
    means = {a["turnaround_mean_s"] for a in answers.values()}
    check(len(means) == 1, f"means {means}")
    check(answers[0]["digest"] == answers[0.3]["digest"], "the simulation is the same")
    # What a task computes is given: 1000 s of it are as sure as the workload is.
    workload = pathlib.Path(directory) / "long.yaml"
    workload.write_text("name: long\ntasks:\n  - {id: long, command: \"true\", outputs: [out], runtime: 1000}\n"
                        "files:\n  out: {size: 1M}\n", encoding="utf-8")
    power = pathlib.Path(directory) / "one.yaml"
    power.write_text("mosa_power: 1\nlevels:\n  - {frequency_mhz: 2400, speed: 1, idle_w: 90, application_w: 30, storage_w: 35, "
                     "network_w: 36}\n", encoding="utf-8")
    words[words.index("--workload") + 1] = workload
    words += ["--power", power]
    answer = json.loads(good(mosa, *words).stdout)
    for low, high in (answer["turnaround_interval_s"], answer["stages"][0]["interval_s"]):
        check(1000 <= low < high < 1002, f"{low} to {high}")
    low, high = answer["energy_interval_j"]
    check(high < 1.01 * low, f"{low} to {high} J")


def test_without_runtimes(mosa, directory):
    """Who forgets runtimes is told that computing is not predicted; a runtime of 0 is one."""
    workload = pathlib.Path(directory) / "runtimes.yaml"
    for runtime, said in (("", "2 of 3 tasks have no runtime"), (", runtime: 0", "")):
        workload.write_text(f"tasks:\n  - {{id: a, command: 'true', outputs: [x]{runtime}}}\n  - {{id: b, command: 'true'{runtime}}}\n"
                            "  - {id: c, command: 'true', runtime: 1}\nfiles: {x: {size: 1M}}\n", encoding="utf-8")
        done = good(mosa, "predict", "--platform", PLATFORM, "--workload", workload, "--repeats", 0)
        check(said in done.stderr and bool(said) == bool(done.stderr), f"expected '{said}': {done.stderr}")
    done = good(mosa, "predict", "--platform", PLATFORM, "--workload", "synthetic:pipeline,small,scale=0.1", "--repeats", 0)
    check(not done.stderr, f"what a synthetic task computes is known: {done.stderr}")


def test_failing_draws(mosa, directory):
    """Whether a node runs full of files that may not go on elsewhere depends on where they begin: a draw in which it does is
    said, and times are of the others."""
    workload = pathlib.Path(directory) / "strict.yaml"
    tasks = "".join(f"  - {{id: t{i}, command: 'true', outputs: [f{i}]}}\n" for i in range(12))
    files = "".join(f"  f{i}: {{size: 5M, strict: 1}}\n" for i in range(12))
    workload.write_text(f"tasks:\n{tasks}files:\n{files}", encoding="utf-8")
    found = None
    for store in range(18, 40):
        words = ["predict", "--platform", PLATFORM, "--workload", workload, "--config", f"hosts=3,store={store}M"]
        done = good(mosa, "--json", *words)
        answer = json.loads(done.stdout)
        if answer["failure"] is None and answer["draws_failed"] > 0:
            found = answer, done, good(mosa, *words)
            break
    check(found is not None, "with no limit some draws fail and others do not")
    answer, done, table = found
    said = f"the run would fail in {answer['draws_failed']} of 20 draws, for example: {answer['draw_failure']}"
    check(" full: '" in answer["draw_failure"] and said in done.stderr and said in table.stderr, done.stderr)
    check(answer["turnaround_mean_s"] is not None or answer["draws_failed"] == 20, "the mean is of the others")
    enough = 20 - answer["draws_failed"] >= 19
    check((answer["turnaround_interval_s"] is not None) == enough, "too few draws are no interval")


def test_bad_input(mosa, directory):
    bad = pathlib.Path(directory) / "bad.json"
    text = PLATFORM.read_text()
    rows = [
        (text[:900], "cut short", {}),
        (text.replace('"mosa_platform": 4', '"mosa_platform": 7'), "version 7", {}),
        (text.replace('"mosa_platform": 4', '"mosa_platform": 1'), "version 1, but this program reads version 4", {}),
        (text.replace('"spread": 0.06', '"spread": 6'), "model.spread is 6: it must be a number from 0 to 1", {}),
        (text.replace('"spread": 0.06', '"sprad": 0.06'), "'model.spread' is missing", {}),
        (text.replace('"ns_per_call": 32000', '"ns_per_call": -1'), "client.call.ns_per_call is -1", {}),
        (text.replace('"speed": 1', '"speed": 1e999'), "is out of range", {}),
        (text, "there are only 3 storage nodes", {"config": "hosts=3,stripe=9"}),
        (text, "there is no host h4, only h1 to h2", {"config": "hosts=2,h4.speed=0.5"}),
        (text, "h2.speed=slow: it must be a number", {"config": "hosts=2,h2.speed=slow"}),
        (text, "'h2.rate': a host has cores, slots, memory, speed", {"config": "hosts=2,h2.rate=1M"}),
        (text, "--repeats 18: 0, or 19 and more", {"repeats": "18"}),
        (text, "cannot read", {"workload": "/nonexistent.yaml"}),
        (text, "write 'files: {x: {size: 22M}}', or make the workload", {"workload": "tasks: [{id: a, command: 'true', outputs: [x]}]"}),
        (text, "cannot write", {"trace": "/nonexistent/trace.json"}),
    ]
    for content, expected, other in rows:
        bad.write_text(content)
        workload = other.get("workload", str(WORKLOAD))
        if workload.startswith("tasks:"):
            path = pathlib.Path(directory) / "workload.yaml"
            path.write_text(workload)
            workload = str(path)
        words = ["predict", "--platform", bad, "--workload", workload, "--config", other.get("config", "hosts=2")]
        if "trace" in other:
            words += ["--trace", other["trace"]]
        if "repeats" in other:
            words += ["--repeats", other["repeats"]]
        done = run(mosa, *words)
        lines = done.stderr.strip().split("\n")
        check(done.returncode in (2, 3) and not done.stdout, f"{expected}: exit code {done.returncode}, {done.stdout}")
        check(len(lines) == 1 and expected in lines[0], f"expected '{expected}': {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mosa", required=True)
    mosa = parser.parse_args().mosa
    with tempfile.TemporaryDirectory() as directory:
        test_answers(mosa)
        test_unequal_hosts(mosa)
        test_energy(mosa, directory)
        test_trace(mosa, directory)
        test_malformed_traces(mosa, directory)
        test_residence(mosa, directory)
        test_full_store(mosa)
        test_model_spread(mosa, directory)
        test_without_runtimes(mosa, directory)
        test_failing_draws(mosa, directory)
        test_bad_input(mosa, directory)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
