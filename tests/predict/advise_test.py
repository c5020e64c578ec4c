"""What `mosa advise` promises on its command line: what it kept and left out adds up, its rules say to `mosa predict` what was
simulated, traces and records are workloads too; bad input is one sentence and an exit code.

    advise_test.py --mosa PROGRAM
"""

import argparse
import json
import pathlib
import sys
import tempfile

from predict_test import PLATFORM, WORKLOAD, check, good, predict, run
from trace_workload_test import RECORD, SEEDS

HARMFUL = """
tasks:
  - {id: make, command: "true", outputs: [all, "it's/one"]}
  - {id: use, command: "true", inputs: [all, "it's/one"], outputs: [end]}
files:
  all: {size: 64M, pattern: "broadcast:4", lifetime: keep}
  "it's/one": {size: 32M}
  end: {size: 1000}
"""


def advise(mosa, *words):
    platform = [] if "--platform" in words else ["--platform", PLATFORM]
    return json.loads(good(mosa, "--json", "advise", *platform, *words).stdout)


def test_answers(mosa, directory):
    rules = directory / "rules.yaml"
    words = ["--workload", WORKLOAD, "--config", "hosts=2", "-o", rules]
    answer = advise(mosa, *words)
    runs = answer["runs"]
    check(answer["hints"] and answer["left_out"], f"{answer['hints']} and {answer['left_out']}")
    check({c["stage"] for c in answer["hints"] + answer["left_out"]} == {"make", "turn", "join"}, "every stage is spoken of")
    for each in answer["hints"]:
        low, high = each["gain"]["interval_s"]
        check(each["rules"] and low <= each["gain"]["seconds"] <= high, f"{each}")
        check(each["gain"]["pays"] and low > 0 or each["reason"].startswith(("with the others", "for the network")), f"{each}")
    for each in answer["left_out"]:
        check(each["reason"] and "rules" not in each, f"{each}")
    # What was advised is what the rules say, and the others are what these say by themselves.
    for name, more in (("advised", ["--rules", rules]), ("by_itself", []), ("dss", [])):
        config = "hosts=2,system=dss" if name == "dss" else "hosts=2"
        same = predict(mosa, "--config", config, *more)
        check(same["turnaround_s"] == runs[name]["turnaround_s"], f"{name}: {same['turnaround_s']} and {runs[name]}")
        for bound, other in zip(same["turnaround_interval_s"], runs[name]["turnaround_interval_s"], strict=True):
            check(abs(bound - other) < 1e-8, f"{name}: the same draws")
    check(runs["advised"]["turnaround_median_s"] < runs["dss"]["turnaround_median_s"], "hints help a pipeline")
    check(answer["gain_over_dss"]["pays"], f"{answer['gain_over_dss']}")
    deployments = answer["deployments"]
    check("hosts=2," in deployments["as_is"]["configuration"] and deployments["points"] > 10, f"{deployments}")
    check(deployments["as_is"]["turnaround_s"] == runs["advised"]["turnaround_s"], "the deployment has these hints")
    again = advise(mosa, *words, "--jobs", 1)
    check({**again, "seconds": 0} == {**answer, "seconds": 0}, "one core says the same as all")
    table = good(mosa, "advise", "--platform", PLATFORM, *words).stdout
    check("Hints that pay" in table and "Left out:" in table and "mosa hint rule add 'a.*' pattern=pipeline" in table, table)


def test_harmful(mosa, directory):
    workload, rules = directory / "harmful.yaml", directory / "harmless.yaml"
    workload.write_text(HARMFUL)
    words = ["--workload", workload, "--config", "hosts=4,slots=1", "--vary", "hosts=1..4"]
    answer = advise(mosa, *words, "-o", rules)
    check(answer["gain_over_by_itself"]["pays"] and answer["gain_over_by_itself"]["bytes_stored"] > 1 << 20,
          f"copies of what is read once: {answer['gain_over_by_itself']}")
    check("broadcast" not in rules.read_text() and "instead of pattern=broadcast:4" in str(answer["hints"]), rules.read_text())
    check(answer["deployments"]["points"] == 4, "--vary is all the space")
    table = good(mosa, "advise", "--platform", PLATFORM, *words).stdout
    check("mosa hint rule add 'it'\\''s/one' pattern=pipeline" in table or "mosa hint rule add 'all' " in table, table)


# Over the network less is sent if parts stay where they are written, but with 'e0' there a node is full.
FULL = """
tasks:
{tasks}
files:
{files}
"""

ODD = """
tasks:
  - {id: m0, command: "true", stage: make, outputs: [-p0]}
  - {id: m1, command: "true", stage: make, outputs: [-p1]}
  - {id: u0, command: "true", stage: use, inputs: [-p0, -p1], outputs: [e0]}
  - {id: u1, command: "true", stage: use, inputs: [-p0, -p1], outputs: [e1]}
files:
  -p0: {size: 64M, pattern: "reduce:a;touch${IFS}x", chunk_size: 4M}
  -p1: {size: 64M, pattern: "reduce:a;touch${IFS}x", chunk_size: 4M}
  e0: {size: 1000}
  e1: {size: 1000}
"""


def test_full(mosa, directory):
    workload = directory / "full_node.yaml"
    tasks = [f"  - {{id: m{i}, command: 'true', stage: make, outputs: [p{i}]}}\n  - {{id: u{i}, command: 'true', stage: use, inputs: [p{i}]}}"
             for i in range(4)] + [f"  - {{id: w{i}, command: 'true', stage: side, outputs: [e{i}]}}" for i in range(3)]
    files = [f"  p{i}: {{size: {size}M}}" for i, size in enumerate((14, 7, 7, 7))] + [f"  e{i}: {{size: {size}M, strict: 1}}" for i, size in enumerate((59, 3, 3))]
    workload.write_text(FULL.format(tasks="\n".join(tasks), files="\n".join(files)))
    words = ["--workload", workload, "--config", "hosts=4,slots=1,store=29M", "--vary", "hosts=4"]
    done = good(mosa, "--json", "advise", "--platform", PLATFORM, *words)
    answer = json.loads(done.stdout)
    runs = answer["runs"]
    fails = runs["by_itself"]["draws_failed"]
    check(runs["advised"]["draws_failed"] == 0 and fails > 0, f"{runs}")
    check(not answer["hints"] and f"would fail in {fails} of 20 draws" in answer["left_out"][0]["reason"], f"{answer}")
    check("would fail" not in done.stderr, done.stderr)
    words[3] = "hosts=4,slots=1,store=26M"
    done = good(mosa, "--json", "advise", "--platform", PLATFORM, *words)
    failed = json.loads(done.stdout)["runs"]["advised"]["draws_failed"]
    check(0 < failed < 20 and f"with these hints the run would fail in {failed} of 20 draws, for example: task 'w0'" in done.stderr, done.stderr)
    check(f"fails in {failed} with these hints" in good(mosa, "advise", "--platform", PLATFORM, *words).stdout, "said beside the hints")


def test_odd_words(mosa, directory):
    """Values as people write them, globs and values that a shell or an option parser would take for something else."""
    workload = directory / "odd.yaml"
    workload.write_text(ODD)
    words = ["--workload", workload, "--config", "hosts=4,slots=2", "--repeats", 0]
    table = good(mosa, "advise", "--platform", PLATFORM, *words, "-o", directory / "odd.rules").stdout
    check("mosa hint rule add './-p*' chunk_size=4194304 'pattern=reduce:a;touch${IFS}x'\n" in table, table)


def test_seen(mosa, directory):
    """What was seen of a run is a workload, by the same texts as of `mosa trace workload`."""
    record = directory / "words.run.json"
    record.write_text(json.dumps(RECORD))
    answer = advise(mosa, "--record", record, "--config", "hosts=2")
    check(answer["workflow"] == "words" and answer["runs"]["advised"]["turnaround_s"] > 1.75, f"{answer['runs']}")
    traced = advise(mosa, SEEDS / "two_tasks", "--config", "hosts=2")
    workload = directory / "two.json"
    made = json.loads(good(mosa, "--json", "trace", "workload", SEEDS / "two_tasks", "-o", workload).stdout)
    told = advise(mosa, "--workload", workload, "--operations", made["operations"], "--config", "hosts=2")
    check(traced["runs"] == told["runs"] and traced["hints"] == told["hints"], f"{traced['runs']} {told['runs']}")


def test_rules_of_others(mosa, directory):
    rules = directory / "others.yaml"
    rules.write_text('mosa_rules: 1\nrules: {"a.*": {pattern: pipeline}, "z/*": {placement: local}}')
    done = good(mosa, "predict", "--platform", PLATFORM, "--workload", WORKLOAD, "--rules", rules, "--repeats", 0)
    check("rule 'z/*' matches no output of 'pipeline'" in done.stderr, done.stderr)
    done = run(mosa, "predict", "--platform", PLATFORM, "--workload", WORKLOAD, "--config", "system=dss", "--rules", rules)
    check(done.returncode == 2 and "system=dss takes no hints" in done.stderr, done.stderr)
    rules.write_text("mosa_rules: 1\nrules: {a: {colour: red}}")
    for words in (["predict", "--platform", PLATFORM, "--workload", WORKLOAD], ["run", WORKLOAD, "--mount", directory]):
        done = run(mosa, *words, "--rules", rules)
        check(done.returncode == 2 and f"{rules}: rule 'a': unknown hint 'colour'" in done.stderr, done.stderr)
    done = run(mosa, "run", WORKLOAD, "--mount", directory, "--rules", rules, "--system", "dss")
    check(done.returncode == 2 and "--system dss takes no hints" in done.stderr, done.stderr)


def test_bad_input(mosa, directory):
    old, sizeless, silent, full, circle = (
        directory / name for name in ("old.json", "sizeless.yaml", "silent.yaml", "full.yaml", "circle.yaml"))
    old.write_text(json.dumps({**json.loads(PLATFORM.read_text()), "mosa_platform": 7}))
    sizeless.write_text("tasks: [{id: a, command: 'true', outputs: [x]}]")
    silent.write_text("tasks: [{id: a, command: 'true', runtime: 1}]")
    full.write_text("tasks: [{id: a, command: 'true', outputs: [x]}]\nfiles: {x: {size: 9G}}")
    circle.write_text("tasks: [{id: a, command: 'true', outputs: [x]}]\nfiles: {x: {size: 1M, pattern: circle}}")
    good_workload = ["--workload", WORKLOAD]
    rows = [
        ([], 2, "give either --workload, or a recorded run"),
        ([*good_workload, "--record", old], 2, "give either --workload, or a recorded run"),
        ([*good_workload, "--platform", old], 2, "version 7"),
        (["--workload", "synthetic:reduce,small"], 2, "only 'mosa predict' takes a synthetic workflow"),
        (["--workload", sizeless], 2, "file 'x' has no size"),
        (["--workload", full], 3, "the run would fail with hints and without hints: "),
        ([*good_workload, "--config", "hosts=0"], 2, "configuration: hosts=0"),
        ([*good_workload, "--config", "hosts=2,system=dss"], 2, "system=dss takes no hints"),
        (["--workload", circle], 2, "file 'x': 'circle' is not a value of hint 'pattern'"),
        ([*good_workload, "--vary", "frequency=1200"], 2, "advice assumes the present system and processors"),
        ([*good_workload, "--vary", "colour=red"], 2, "'colour' is not a name"),
        ([*good_workload, "--vary", "placement:**=local"], 2, "mosa advise chooses the placement of files itself"),
        ([*good_workload, "--repeats", "5"], 2, "--repeats 5: 0, or 19 and more"),
        ([*good_workload, "--least", "-1"], 2, "--least"),
        (["--record", WORKLOAD], 2, "is not a complete record of a run"),
        ([PLATFORM], 2, "not a trace"),
        ([*good_workload, "-o", "/nonexistent/rules"], 3, "cannot write /nonexistent/rules"),
    ]
    for words, code, expected in rows:
        platform = [] if "--platform" in words else ["--platform", PLATFORM]
        done = run(mosa, "advise", *platform, *words)
        check(done.returncode == code and expected in done.stderr, f"{words}: {done.returncode} {done.stderr}")
    # Nothing to hint is an answer: as is one host.
    answer = advise(mosa, "--workload", silent, "--config", "hosts=2")
    check(not answer["hints"] and not answer["left_out"], f"{answer['hints']}")
    answer = advise(mosa, *good_workload, "--config", "hosts=1", "--repeats", 0)
    check(not answer["hints"] and answer["runs"]["advised"]["turnaround_interval_s"] is None, f"{answer['hints']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mosa", required=True)
    mosa = parser.parse_args().mosa
    with tempfile.TemporaryDirectory(prefix="mosa-advise-") as name:
        for test in (test_answers, test_harmful, test_full, test_odd_words, test_seen, test_rules_of_others, test_bad_input):
            test(mosa, pathlib.Path(name))
    print("advise: all as promised")


if __name__ == "__main__":
    sys.exit(main())
