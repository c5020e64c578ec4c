"""What `mosa plan` promises on its command line: a plan that gains, which `mosa predict` follows to the same answer; none
where nothing gains; bad input is one sentence and an exit code.

    plan_test.py --mosa PROGRAM
"""

import argparse
import json
import pathlib
import tempfile

from predict_test import PLATFORM, WORKLOAD, check, good, run
from trace_workload_test import RECORD

TILES = 24


def row_of_tiles():
    """Tiles in an order in which neighbours, which are compared, are far from each other."""
    order = [i * 7 % TILES for i in range(TILES)]
    tasks = [f"  - {{id: make-{i}, command: 'true', runtime: 0.1, outputs: [tile/{i}]}}" for i in order]
    tasks += [
        f"  - {{id: compare-{i}, command: 'true', runtime: 0.1, inputs: [tile/{i}, tile/{i + 1}], outputs: [diff/{i}]}}"
        for i in range(TILES - 1)
    ]
    files = [f"  tile/{i}: {{size: 8M}}" for i in range(TILES)] + [f"  diff/{i}: {{size: 1000}}" for i in range(TILES - 1)]
    return "\n".join(["tasks:", *tasks, "files:", *files, ""])


def plan(mosa, *words):
    return json.loads(good(mosa, "--json", "plan", "--platform", PLATFORM, *words).stdout)


def test_gains(mosa, directory):
    workload, file = directory / "tiles.yaml", directory / "plan.json"
    workload.write_text(row_of_tiles())
    words = ["--workload", workload, "--config", "hosts=4,slots=2"]
    answer = plan(mosa, *words, "-o", file)
    check(json.loads(file.read_text()) == answer, "the file is what was said")
    said = answer["predicted"]
    check(said["gain_interval_s"][0] > 0 and said["link_bytes"] < said["unplanned_link_bytes"] / 2, f"{said}")
    check(len(answer["tasks"]) == 2 * TILES - 1 and {t["host"] for t in answer["tasks"]} == {"h1", "h2", "h3", "h4"}, "all placed")
    followed = json.loads(good(mosa, "--json", "predict", "--platform", PLATFORM, *words, "--plan", file).stdout)
    check(abs(followed["turnaround_s"] - max(t["end_s"] for t in answer["tasks"])) < 0.2, f"{followed['turnaround_s']} and the plan's")
    places = {t["id"]: t["host"] for t in followed["tasks"]}
    check(places == {t["id"]: t["host"] for t in answer["tasks"]}, "predict follows it")
    check({**plan(mosa, *words, "--jobs", 1)} == answer, "one core says the same as all")
    table = good(mosa, "plan", "--platform", PLATFORM, *words).stdout
    check("with this plan, and" in table and "MOST BYTES STORED" in table, table)


def test_no_gain(mosa, directory):
    file = directory / "empty.json"
    words = ["--workload", WORKLOAD, "--config", "hosts=1"]
    answer = plan(mosa, *words, "-o", file)
    check(not answer["tasks"] and not answer["files"] and answer["predicted"]["gain_s"] == 0, f"{answer}")
    table = good(mosa, "plan", "--platform", PLATFORM, *words).stdout
    check("No plan that was tried is faster" in table, table)
    with_it = json.loads(good(mosa, "--json", "predict", "--platform", PLATFORM, *words, "--plan", file).stdout)
    without = json.loads(good(mosa, "--json", "predict", "--platform", PLATFORM, *words).stdout)
    check(with_it == without, "an empty plan changes nothing")
    said = run(mosa, "predict", "--platform", PLATFORM, *words, "--plan", file).stderr
    check("the plan is empty: tasks go where their data is" in said, said)


def test_record(mosa, directory):
    record = directory / "words.run.json"
    record.write_text(json.dumps(RECORD))
    answer = plan(mosa, "--record", record, "--repeats", 0)
    check(answer["workflow"] == "words" and answer["predicted"]["seconds_interval"] is None, f"{answer['predicted']}")
    hosts, slots = len(RECORD["hosts"]), RECORD["hosts"][0]["slots"]
    check(f"hosts={hosts}," in answer["configuration"] and f"slots={slots}," in answer["configuration"], answer["configuration"])


def test_run(mosa, directory):
    """A run makes its plan itself, from sizes in the workflow, else from the record of an earlier run."""
    tiles, record, mount = directory / "auto.yaml", directory / "auto.run.json", directory / "mount"
    mount.mkdir()
    tiles.write_text(row_of_tiles().replace("0.1", "2").replace("8M", "100M"))  # Long, so that there is time to look.
    hosts = ["--mount", mount, "--hosts", "a,b,c,d", "--exec", "env HOST={host} sh -c", "--slots", "2"]
    words = ["run", tiles, *hosts, "--plan", "auto", "--record", record, "--dry-run"]
    done, file = good(mosa, *words, "--platform", PLATFORM), directory / "auto.run.plan.json"
    check(" s predicted, " in done.stderr and " s without it; found in " in done.stderr, done.stderr)
    check(not file.exists(), "--dry-run writes nothing")
    run(mosa, *words[:-1], "--platform", PLATFORM, "--retries", "0")  # Its tasks write nothing, so it fails.
    made = json.loads(file.read_text())
    check(json.loads(record.read_text())["plan"] == str(file), "the record names the plan")
    record.unlink()
    check(made["hosts"] == ["h1", "h2", "h3", "h4"] and len(made["tasks"]) == 2 * TILES - 1, f"{made['hosts']}")
    tiles.write_text(row_of_tiles().replace("8M", "400M"))
    done = good(mosa, *words, "--platform", PLATFORM)
    check("mosa run: no plan: the run would fail with and without a plan: " in done.stderr, done.stderr)
    tiles.write_text(row_of_tiles().split("files:")[0])
    done = good(mosa, *words, "--platform", PLATFORM)
    check("no plan: file 'tile/0' has no size" in done.stderr and "the next run takes sizes" in done.stderr, done.stderr)
    record.write_text("{}")
    done = good(mosa, *words, "--platform", PLATFORM)
    check("mosa run: no plan: " in done.stderr and "is not a complete record of a run" in done.stderr, done.stderr)
    for flags in (words, [*words[:-4], "--dry-run", "--platform", PLATFORM]):
        done = run(mosa, *flags)
        check(done.returncode == 2 and "--plan auto and --platform go together" in done.stderr, f"{flags}: {done.stderr}")


def test_bad_input(mosa, directory):
    workload, file = directory / "tiles.yaml", directory / "plan.json"
    made = json.loads(file.read_text())

    def changed(name, **fields):
        path = directory / name
        path.write_text(json.dumps({**made, **fields}))
        return path

    cut = directory / "cut.json"
    cut.write_text(file.read_text()[:1000])
    task = made["tasks"][0]
    follow = ["predict", "--platform", PLATFORM, "--workload", workload]
    four = ["--config", "hosts=4"]
    for words, code, sentence in [
        ([*follow, *four, "--plan", directory / "none.json"], 3, "none.json"),
        ([*follow, *four, "--plan", cut], 2, "is not valid JSON: make the plan again"),
        ([*follow, *four, "--plan", PLATFORM], 2, "is not a plan: 'mosa plan' writes one"),
        ([*follow, *four, "--plan", changed("v.json", mosa_plan=9)], 2, "has plan version 9"),
        ([*follow, *four, "--plan", changed("h.json", tasks=[{**task, "host": "h9"}])], 2, "'h9', which is not in 'hosts'"),
        ([*follow, *four, "--plan", changed("t.json", tasks=[{**task, "patience_s": -1}])], 2, "that are not from 0"),
        ([*follow, *four, "--plan", changed("f.json", files={"tile/1": {"replicas": "2"}})], 2, "which is not about speed"),
        ([*follow, *four, "--plan", changed("w.json", tasks=[task])], 3, "does not fit this workflow: it has no task"),
        ([*follow, "--config", "hosts=2", "--plan", file], 3, "is for 4 hosts, and there are 2"),
        ([*follow, "--config", "hosts=4,system=dss", "--plan", file], 2, "system=dss"),
        ([*follow, *four, "--plan", file, "--rules", file], 2, "--rules excludes --plan"),
        (["plan", "--platform", PLATFORM], 2, "give either --workload"),
        (["plan", "--platform", PLATFORM, "--workload", workload, "--config", "system=dss"], 2, "use system=wass"),
        (["plan", "--platform", PLATFORM, "--workload", workload, "--repeats", 5], 2, "19"),
        (["plan", "--platform", PLATFORM, "--workload", workload, "--config", "placement:tile/*=local"], 2, "leave it out"),
        (["plan", "--platform", PLATFORM, "--workload", workload, "-o", directory / "no" / "p.json", "--repeats", 0], 3, "no/p.json"),
        (["run", workload, "--plan", file, "--system", "dss", "--mount", directory], 2, "--system dss places no tasks"),
        (["run", workload, "--plan", file, "--mount", directory], 3, "is for 4 hosts, and there are 1"),
    ]:
        done = run(mosa, *words)
        check(done.returncode == code and sentence in done.stderr, f"{words}: {done.returncode} {done.stderr}")
        check(done.stderr.count("\n") <= 2, f"one sentence: {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mosa", required=True)
    mosa = str(pathlib.Path(parser.parse_args().mosa).resolve())
    with tempfile.TemporaryDirectory() as name:
        for test in (test_gains, test_no_gain, test_record, test_run, test_bad_input):
            test(mosa, pathlib.Path(name))
    print("passed")


if __name__ == "__main__":
    main()
