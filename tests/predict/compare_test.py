"""What `mosa compare` promises on its command line: runs as predicted are not slower, and the part that makes others slower is
named; what cannot be compared is said, and the rest is compared.

Records are simulated: what `mosa predict` says of a cluster with another seed, in the form of `mosa run`.

    compare_test.py --mosa PROGRAM
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PLATFORM = HERE / "platform_guess.json"
DEPLOYMENT = "hosts=4,slots=1,manager=apart,system=dss"
BEGUN = 1_790_000_000
MIB = 1 << 20
ANOMALY = 7


def check(condition, text):
    if not condition:
        raise SystemExit(f"FAILED: {text}")


def run(mosa, *words):
    return subprocess.run([mosa, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


def workload():
    """Writers, readers, and a few that gather."""
    tasks, files = [], {}

    def add(name, inputs, outputs, seconds):
        tasks.append({"id": name, "command": ["work", name], "inputs": inputs, "outputs": list(outputs), "runtime": seconds})
        files.update({path: {"size": size} for path, size in outputs.items()})

    for i in range(8):
        add(f"make_{i}", [], {f"a.{i}": 12 * MIB}, 0.3)
    for i in range(8):
        add(f"turn_{i}", [f"a.{i}"], {f"b.{i}": (2 + i % 3) * MIB}, 0.6)
    for i in range(4):
        add(f"sum_{i}", [f"b.{i}", f"b.{i + 4}"], {f"c.{i}": MIB}, 1)
    return {"name": "mixed", "tasks": tasks, "files": files}


def mix(number):
    mask = (1 << 64) - 1
    number = (number + 0x9E3779B97F4A7C15) & mask
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & mask
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & mask
    return number ^ (number >> 31)


def digest(task):
    """As DigestOf() in tools/runner/record.cc: by this a record's task is known again."""
    number = 0xCBF29CE484222325 ^ mix(0)
    words = [("c", word) for word in task["command"]]
    words += [("i", path) for path in sorted(task["inputs"])]
    words += [("o", path) for path in sorted(task["outputs"])]
    for kind, word in words:
        for byte in f"{kind}{word}\0".encode():
            number = ((number ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return f"{mix(number):016x}"


def held(file, size):
    nodes = {}
    for segment in file["segments"]:
        for chunk in range((size + file["chunk_size"] - 1) // file["chunk_size"]):
            node = segment["nodes"][chunk % segment["width"]]
            nodes[node] = nodes.get(node, 0) + min(file["chunk_size"], size - chunk * file["chunk_size"])
    return nodes


def simulated(mosa, path, seed, unlike="", residence=False):
    """A record as `mosa run` would write it on a cluster with this seed, where hosts are `unlike` the others."""
    words = ["--json", "predict", "--platform", PLATFORM, "--workload", path, "--config", f"{DEPLOYMENT},seed={seed}{unlike}",
             "--repeats", 0, "--layouts", "--residence"]
    done = run(mosa, *words)
    check(done.returncode == 0, done.stderr)
    said = json.loads(done.stdout)
    layouts = {file["path"]: file for file in said["files"]}
    form = workload()
    begun = BEGUN + 1000 * seed

    def facts(name):
        size = form["files"][name]["size"]
        return {"path": name, "size_bytes": size, "mtime_ns": 0, "nodes": held(layouts[name], size),
                "chunk_bytes": layouts[name]["chunk_size"]}

    record = {"version": 1, "workflow": {"name": "mixed", "path": str(path)}, "system": "dss", "outcome": "done", "start": begun,
              "end": begun + said["turnaround_s"], "turnaround_seconds": said["turnaround_s"], "hosts_lost": [], "tasks": [],
              "hosts": [{"name": f"h{i}", "slots": 1, "mount": "/mnt", "link_bytes_per_second": 25_000_000} for i in range(1, 5)]}
    if residence:
        record["residence"] = said["residence"]
    for task, ran in zip(form["tasks"], said["tasks"]):
        check(task["id"] == ran["id"], f"{task['id']}: {ran['id']}")
        attempt = {"host": ran["host"], "start": begun + ran["start_s"], "end": begun + ran["end_s"], "exit_code": 0}
        record["tasks"].append({"id": task["id"], "stage": task["id"].rpartition("_")[0], "state": "done", "kept": False,
                                "digest": digest(task), "command": task["command"], "inputs": [facts(f) for f in task["inputs"]],
                                "outputs": [facts(f) for f in task["outputs"]], "attempts": [attempt]})
    return record


def slower(record, more):
    """The same run with tasks that take more(task, attempt) seconds longer: what followed a task follows it still."""
    slow = copy.deepcopy(record)
    writers = {file["path"]: k for k, task in enumerate(record["tasks"]) for file in task["outputs"]}
    was = [task["attempts"][0] for task in record["tasks"]]
    now = [task["attempts"][0] for task in slow["tasks"]]
    for k in sorted(range(len(was)), key=lambda k: was[k]["start"]):
        before = [writers[file["path"]] for file in record["tasks"][k]["inputs"]]
        before += [j for j, other in enumerate(was) if other["host"] == was[k]["host"] and other["end"] <= was[k]["start"]]
        could = max([record["start"], *(was[j]["end"] for j in before)])
        could_now = max([record["start"], *(now[j]["end"] for j in before)])
        now[k]["start"] = could_now + was[k]["start"] - could
        now[k]["end"] = now[k]["start"] + was[k]["end"] - was[k]["start"] + more(record["tasks"][k], was[k])
    slow["end"] = max(attempt["end"] for attempt in now)
    return slow


class Comparison:
    def __init__(self, mosa, directory):
        self.mosa = mosa
        self.directory = pathlib.Path(directory)
        self.path = self.directory / "mixed.json"
        self.path.write_text(json.dumps(workload()), encoding="utf-8")
        self.clean = [simulated(mosa, self.path, seed) for seed in (71, 72, 73)]
        self.count = 0

    def words(self, records, *more):
        words = ["compare", "--platform", PLATFORM, "--config", "manager=apart"]
        for record in records:
            self.count += 1
            path = self.directory / f"run-{self.count}.json"
            path.write_text(record if isinstance(record, str) else json.dumps(record), encoding="utf-8")
            words += ["--run", path]
        return [*words, *more]

    def run(self, records, *more):
        done = run(self.mosa, "--json", *self.words(records, *more))
        check(done.returncode in (0, ANOMALY), f"exit code {done.returncode}: {done.stderr}")
        answer = json.loads(done.stdout)
        check((done.returncode == ANOMALY) == answer["finding"]["is_slower"], f"exit code {done.returncode}: {answer['finding']}")
        return answer

    def refused(self, expected, records, *more, code=2):
        done = run(self.mosa, *self.words(records, *more))
        check(done.returncode == code and not done.stdout, f"exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
        check(expected in done.stderr, f"expected '{expected}': {done.stderr}")


def cell(answer, level, name):
    found = [c for c in answer["cells"] if (c["level"], c["name"]) == (level, name)]
    check(len(found) == 1, f"{level} {name}: {found}")
    return found[0]


def test_clean(made):
    answer = made.run(made.clean)
    check(not answer["finding"]["is_slower"], f"{answer['finding']}")
    whole = cell(answer, "workflow", "mixed")
    low, high = whole["predicted_interval_s"]
    check(low < whole["predicted_s"] < high and low < whole["measured_s"] < high and whole["runs"] == 3, f"{whole}")
    levels = {c["level"] for c in answer["cells"]}
    check(levels == {"workflow", "stage", "tasks", "start", "host", "task"}, f"{levels}")
    check(all(c["verdict"] != "not measured" for c in answer["cells"]), "all is measured")
    check([b["name"] for b in answer["link_bytes"]] == ["h1", "h2", "h3", "h4"], f"{answer['link_bytes']}")
    check(not any(b["off"] for b in answer["stage_bytes"] + answer["link_bytes"]), "bytes are where they are predicted")
    words = made.words(made.clean)
    one, other = run(made.mosa, "--json", *words), run(made.mosa, "--json", *words)
    check(one.returncode == 0 and one.stdout == other.stdout, "the same question has the same answer")
    table = run(made.mosa, *words)
    check(table.returncode == 0 and "\nNot slower: " in table.stdout and "90 % INTERVAL" in table.stdout, table.stdout)


def test_slow(made):
    host = [slower(record, lambda _, attempt: attempt["end"] - attempt["start"] if attempt["host"] == "h3" else 0) for record in made.clean]
    link = [simulated(made.mosa, made.path, seed, ",h2.link=5M") for seed in (71, 72, 73)]
    for runs, part, name, what in ((host, "processor", "h3", "'top' there"), (link, "link", "h2", "'ip -s link'")):
        answer = made.run(runs)
        finding = answer["finding"]
        check(finding["is_slower"] and finding["excess_share"] > 0.1 and "since " + answer["runs"][0] in finding["sentence"], f"{finding}")
        first = finding["causes"][0]
        check(first["suspects"] == [{"part": part, "host": name}], f"{finding['causes']}")
        check(first["witnesses"] and first["open_first"].startswith(f"{name}: {what}"), f"{first}")
        check(first["without_s"] < cell(answer, "workflow", "mixed")["measured_s"], f"{first}")
        # Runs are put in order by their own times, whatever the order of the words.
        words = made.words(list(reversed(runs)))
        again = json.loads(run(made.mosa, "--json", *words).stdout)
        check(again["runs"] == [str(word) for word in reversed(words) if str(word).endswith(".json") and "run-" in str(word)],
              f"{again['runs']}")
    table = run(made.mosa, *made.words(runs))
    check(table.returncode == ANOMALY and "\nSlower: " in table.stdout and "Open first: h2: 'ip -s link'" in table.stdout, table.stdout)


def test_partly(made):
    """What a record lacks is said; the rest is compared."""
    good = made.clean[0]
    lost, stepped, failed, other_links, other_hosts, strange = (copy.deepcopy(made.clean[1]) for _ in range(6))
    lost.update(hosts_lost=["h4"])
    stepped["tasks"][0]["attempts"][0]["end"] = stepped["tasks"][0]["attempts"][0]["start"] - 5
    failed.update(outcome="failed")
    failed["tasks"][-1]["state"] = "failed"
    for number, one in enumerate(other_links["hosts"]):
        one["link_bytes_per_second"] = 125_000_000
        other_hosts["hosts"][number]["name"] = f"node{number}"
    for task in strange["tasks"][:3]:
        task["digest"] = "0" * 16
    more, shrunk, held_less = (copy.deepcopy(made.clean[1]) for _ in range(3))
    more["tasks"].append({**more["tasks"][0], "id": "other_0"})
    shrunk["tasks"][0]["outputs"][0]["size_bytes"] = -1
    held_less["tasks"][0]["outputs"][0]["nodes"]["h1"] = -1
    rows = [
        (lost, "the run lost h4, so its total time is not compared", False),
        (stepped, "left out (was a clock set back?): 'make_0'", False),
        (failed, "the run is 'failed', not done", False),
        (strange, "another command or other files than in the workload, left out: 'make_0' and 2 more", False),
        (more, "not in the workload, left out: 'other_0'", False),
        (shrunk, "an impossible file size, left out (was a clock set back?): 'make_0'", False),
        (held_less, "an impossible file size, left out (was a clock set back?): 'make_0'", False),
        (other_links, "was it measured on another deployment?", True),
    ]
    for record, expected, whole in rows:
        answer = made.run([record])
        check(any(expected in note for note in answer["notes"]), f"expected '{expected}': {answer['notes']}")
        verdict = cell(answer, "workflow", "mixed")["verdict"]
        check((verdict == "not measured") != whole and not answer["finding"]["is_slower"], f"{expected}: {verdict}, {answer['finding']}")
        check(cell(answer, "tasks", "turn")["runs"] == 1, f"{expected}: the rest is compared")
    for record, expected in ((json.dumps(made.clean[1])[:3000], "is not a complete record of a run"), (good, "is the same run as"),
                             (other_hosts, "is of other hosts (node0, node1, node2, node3)")):
        answer = made.run([good, record])
        check(len(answer["runs"]) == 1 and any(expected in n and n.endswith("left out") for n in answer["notes"]), f"{answer['notes']}")


def test_unjudged(made):
    """Of a run that is not whole nobody says how long the workflow took; where storage nodes are on hosts of their own, no part is named."""
    lost = copy.deepcopy(made.clean[1])
    lost.update(hosts_lost=["h4"])
    done = run(made.mosa, *made.words([made.clean[0], lost]))
    check(done.returncode == 0 and "\nNot judged: " in done.stdout, done.stdout)
    slow = [slower(simulated(made.mosa, made.path, seed, ",storage=2"), lambda _, a: a["end"] - a["start"]) for seed in (71, 72, 73)]
    words = made.words(slow)
    words[words.index("manager=apart")] = "manager=apart,storage=2"
    done = run(made.mosa, "--json", *words)
    check(done.returncode == ANOMALY, f"{done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    check(answer["finding"]["is_slower"] and not answer["finding"]["is_replayed"] and not answer["finding"]["causes"], f"{answer['finding']}")
    check(any("storage nodes on hosts without tasks are not replayed" in note for note in answer["notes"]), f"{answer['notes']}")
    table = run(made.mosa, *words).stdout
    check("\nSlower: " in table and "No single part" not in table, table)


def test_silent(made):
    """Tasks of which nobody says how long they compute are not compared, and nothing is blamed for their time."""
    form = workload()
    for task in form["tasks"]:
        if task["id"].startswith("turn"):
            del task["runtime"]
    some = made.directory / "some.json"
    some.write_text(json.dumps(form), encoding="utf-8")
    answer = made.run(made.clean, "--workload", some)
    check(any("does not say how long it computes, left out" in note and "'turn_0' and 7 more" in note for note in answer["notes"]),
          f"{answer['notes']}")
    check(not answer["finding"]["is_slower"], f"{answer['finding']}")
    for level, name in (("workflow", "mixed"), ("tasks", "turn"), ("task", "turn_0")):
        check(cell(answer, level, name)["verdict"] == "not measured", f"{level} {name}")
    check(cell(answer, "tasks", "make")["runs"] == 3, "the rest is compared")
    for task in form["tasks"]:
        task.pop("runtime", None)
    some.write_text(json.dumps(form), encoding="utf-8")
    made.refused("give a --workload that does", made.clean, "--workload", some, code=3)


def test_nothing(made):
    """A run of which nothing can be compared is not as predicted either."""
    failed = copy.deepcopy(made.clean[1])
    failed["outcome"] = "failed"
    for task in failed["tasks"]:
        task.update(state="pending", attempts=[])
    made.refused("can be compared: ", [failed], code=3)
    answer = made.run([made.clean[0], failed])
    check(len(answer["runs"]) == 1 and any("can be compared; left out" in note for note in answer["notes"]), f"{answer['notes']}")


def test_sizes(made):
    """A file has the size of the last run that knows it."""
    form = workload()
    form["files"] = {}
    bare = made.directory / "bare.json"
    bare.write_text(json.dumps(form), encoding="utf-8")
    failed = copy.deepcopy(made.clean[2])
    failed["outcome"] = "failed"
    failed["tasks"][-1]["state"] = "failed"
    for file in failed["tasks"][-1]["outputs"]:
        del file["size_bytes"]
    answer = made.run([made.clean[0], failed], "--workload", bare)
    check(any("20 files have no size in the workload" in note for note in answer["notes"]), f"{answer['notes']}")


def test_chunks(made):
    """Each file counts once, and what is in other chunks is said once."""
    usual = made.clean[0]["tasks"][0]["outputs"][0]["chunk_bytes"]
    names = {name: file["size"] for name, file in workload()["files"].items()}

    def answer_of(prefix, chunk_bytes):
        record = copy.deepcopy(made.clean[0])
        for file in (file for task in record["tasks"] for file in task["inputs"] + task["outputs"] if file["path"].startswith(prefix)):
            if chunk_bytes:
                file["chunk_bytes"] = chunk_bytes
            else:
                del file["chunk_bytes"]
        answer = made.run([record])
        return answer, [note for note in answer["notes"] if "in chunks of" in note]

    answer, said = answer_of("", usual)
    check(answer["chunks"] == [{"chunk_bytes": usual, "predicted_share": 1, "measured_share": 1}] and not said, f"{answer['chunks']} {said}")
    answer, said = answer_of("c.", 64 << 10)  # Nobody reads these; others are written and read.
    share = sum(size for name, size in names.items() if name.startswith("c.")) / sum(names.values())
    found = [each["measured_share"] for each in answer["chunks"] if each["chunk_bytes"] == 64 << 10]
    check(len(found) == 1 and abs(found[0] - share) < 1e-9 and not said, f"{answer['chunks']}, not {share}: {said}")
    answer, said = answer_of("a.", 64 << 10)
    check(len(said) == 1 and "in chunks of 64.0 KiB, predicted 0 %" in said[0] and "chunk=65536" in said[0], f"{answer['notes']}")
    answer, said = answer_of("", None)
    check(answer["chunks"] == [] and not said, f"a record that does not say it: {answer['chunks']} {said}")


def test_no_requests(made):
    """Records need not say how long requests stayed."""
    answer = made.run([made.clean[0]])
    check(any("1 of 1 records do not say how long requests stayed" in note for note in answer["notes"]), f"{answer['notes']}")
    check(answer["requests"] == [], f"{answer['requests']}")


def with_requests(record, change):
    """The record with what `change` makes of each daemon's rows."""
    changed = copy.deepcopy(record)
    for daemon in changed["residence"]["daemons"]:
        for row in daemon["requests"]:
            change(daemon, row)
    return changed


def test_partly_known_requests(made):
    """What a record does not know of requests is said; figures that no requests have are not compared."""
    well = simulated(made.mosa, made.path, 301, residence=True)
    place = next(i for i, d in enumerate(well["residence"]["daemons"]) if (d["component"], d["host"]) == ("mount", "h3"))
    rows = [
        ({"failure": "it is gone"}, {}, {}, "residence times are unknown for: 'the mount of h3 (it is gone)'"),
        ({"since_start": True}, {}, {}, "its requests are counted from then on: 'the mount of h3'"),
        ({"truncated": True}, {}, {}, "so the others are not compared: 'the mount of h3'"),
        ({}, {"rows_left_out": 17}, {}, "17 smaller ones are not"),
        ({}, {}, {"sum_ns": -10**13}, "impossible times or numbers of requests, which are not compared: 'the mount of h3'"),
        ({}, {}, {"sum_ns": 10**30}, "of requests, which are not compared: 'the mount of h3'"),
        ({}, {}, {"p90_us": -1}, "of requests, which are not compared: 'the mount of h3'"),
        ({}, {}, {"count": -3}, "of requests, which are not compared: 'the mount of h3'"),
        ({}, {}, {"count": 1 << 60}, "of requests, which are not compared: 'the mount of h3'"),
    ]
    for daemon, residence, row, expected in rows:
        record = copy.deepcopy(well)
        record["residence"].update(residence)
        record["residence"]["daemons"][place].update(daemon)
        record["residence"]["daemons"][place]["requests"][0].update(row)
        answer = made.run([record])
        check(any(expected in note for note in answer["notes"]), f"expected '{expected}': {answer['notes']}")
        check(any(r["p"] is not None for r in answer["requests"]), f"{expected}: the rest is compared")
        if row:
            check(all(not r["measured"] for r in answer["requests"] if (r["component"], r["host"]) == ("mount", "h3")), expected)


def test_partly_known_totals(made):
    """What a mount moved in all is not compared where a record does not say it as it can be; the rest is."""
    well = simulated(made.mosa, made.path, 301, residence=True)
    mounts = [d for d in well["residence"]["daemons"] if d["component"] == "mount"]
    for totals in (None, [], "many", {}, *({"bytes_read_remote": bad} for bad in (-1, 1 << 63, 1e300, "many", None))):
        for mount in mounts:
            mount["totals"] = totals
        check(any(r["p"] is not None for r in made.run([well])["requests"]), f"{totals}: the rest is compared")


def test_requests_alone(made):
    """Requests that stay too long are shown, also of the only run there is; if the workflow took no longer, they are no reason to alarm."""
    def swapping(daemon, row):
        if row["class"].startswith("node.") and daemon["host"] == "h3":
            row["sum_ns"] *= 60

    well = [simulated(made.mosa, made.path, seed, residence=True) for seed in (301, 302, 303)]
    slow = [with_requests(record, swapping) for record in well]
    answer = made.run(slow)
    check(not answer["finding"]["is_slower"], f"{answer['finding']}")
    check(any(r["verdict"] == "anomaly" for r in answer["requests"]), f"{answer['requests']}")
    answer = made.run([well[0], slow[1], well[2]])
    check(all(r["verdict"] != "anomaly" for r in answer["requests"]), "one odd run between two others is none")
    answer = made.run([slow[1]])
    off = [r for r in answer["requests"] if r["verdict"] == "anomaly"]
    check(off, "the only run shows enough")
    for r in off:
        times = r["measured"]["mean_s"] / r["predicted"]["mean_s"]
        check(20 < times < 180 and r["residual_share"] > 5 and r["more_s"] > 0 and len(r["shown_in"]) == 1, f"{r}")


def test_predicted_requests(made):
    """Requests are held against what is predicted of them: those that cross a slow link are named, and it is to blame."""
    well = [simulated(made.mosa, made.path, seed, residence=True) for seed in (301, 302, 303)]
    answer = made.run(well)
    judged = [r for r in answer["requests"] if r["p"] is not None]
    check(len(judged) > 10 and all(r["verdict"] != "anomaly" for r in judged), f"{judged}")
    check(all(r["verdict"] == "not judged" for r in answer["requests"] if r["class"] == "fuse.read"), f"{answer['requests']}")
    check(any("others are shown alone: 'fuse.*'" in note for note in answer["notes"]), f"{answer['notes']}")
    slow = [simulated(made.mosa, made.path, seed, ",h2.link=3M", residence=True) for seed in (301, 302, 303)]
    slow[0]["residence"]["daemons"][-1]["requests"].append(
        {"class": "node.allocate", "peer": "h1", "count": 9, "sum_ns": 10**9, "p50_us": 1.0, "p90_us": 2.0})
    answer = made.run(slow)
    check(answer["finding"]["is_slower"], f"a slow link: {answer['finding']}")
    off = [r for r in answer["requests"] if r["verdict"] == "anomaly"]
    check(off and all("h2" in (r["host"], r["peer"]) for r in off), f"{off}")
    check("predicted" in off[0]["sentence"] and "h2" in off[0]["open_first"], f"{off[0]}")
    check(any(r["class"] == "node.allocate" and r["verdict"] == "not predicted" and r["measured"]["count"] == 9 for r in answer["requests"]),
          f"{answer['requests']}")
    best = answer["finding"]["causes"][0]
    check(best["suspects"] == [{"part": "link", "host": "h2"}], f"{answer['finding']['causes']}")
    table = run(made.mosa, *made.words(slow)).stdout
    check("REQUESTS" in table and best["sentence"] in table, table)


def busy(record, share):
    """The record of a machine of two processors of which others had that share; tasks computed what is said."""
    said = {task["id"]: task["runtime"] for task in workload()["tasks"]}
    took = record["end"] - record["start"]
    record["machines"] = [{"hosts": ["h1", "h2", "h3", "h4"], "runner": True, "manager": True, "processors": 2, "seconds": took, "busy_s": 1.0, "stolen_s": 0, "daemons_s": 0,
                           "tasks_s": 1.0, "waited_s": took / 2, "others_s": 2 * took * share}]
    for task in record["tasks"]:
        task["attempts"][0]["processor_s"] = said[task["id"]]
    return record


def test_busy_machine(made):
    """A machine that is busy with others' work is no fault of the store; one that is not is none either."""
    def longer(task, attempt):
        return 0.5 * (attempt["end"] - attempt["start"])

    slow = [slower(record, longer) for record in made.clean]
    answer = made.run(slow)
    check(answer["finding"]["is_slower"] and answer["machine_busy"] == "" and answer["machines"] == [], "nothing is known of the machine")
    answer = made.run([busy(copy.deepcopy(record), 0.35) for record in slow])
    check(not answer["finding"]["is_slower"], f"{answer['finding']}")
    said = "machine busy: the processors of h1, h2, h3 and h4 were 35 % busy with other work in 3 of 3 runs"
    check(answer["machine_busy"].startswith(said) and answer["machine_busy"] in answer["notes"], f"{answer['machine_busy']}")
    check([round(m["others_share"], 6) for m in answer["machines"]] == [0.35] * 3 and answer["machines"][0]["waited_share"] == 0.5,
          f"{answer['machines']}")
    answer = made.run([busy(copy.deepcopy(record), 0.02) for record in slow])
    check(answer["finding"]["is_slower"] and answer["machine_busy"] == "", "nobody else was there")
    impossible = busy(copy.deepcopy(slow[0]), 0.35)
    impossible["machines"][0]["seconds"] = -1
    answer = made.run([impossible])
    check(any("impossible times, so the load is unknown for: 'h1, h2, h3, h4'" in note for note in answer["notes"]),
          f"{answer['notes']}")
    impossible["machines"][0].update(seconds=1, others_s=20)
    answer = made.run([impossible])
    check(answer["machines"] == [], "others had more than there is")
    stolen = [busy(copy.deepcopy(record), 0.01) for record in slow]
    for record in stolen:
        machine = record["machines"][0]
        machine.update(waited_s=0, stolen_s=0.35 * 2 * machine["seconds"], others_s=0.36 * 2 * machine["seconds"])
    answer = made.run(stolen)
    check(not answer["finding"]["is_slower"] and round(answer["machines"][0]["stolen_share"], 6) == 0.35, f"{answer['finding']} {answer['machines']}")
    odd = slower(made.clean[1], lambda task, attempt: 20 * (attempt["end"] - attempt["start"]))
    answer = made.run([made.clean[0], odd, made.clean[2]])
    check(not answer["finding"]["is_slower"], f"one odd run among others: {answer['finding']}")


def test_refusals(made):
    good = made.clean[0]
    other = copy.deepcopy(good)
    for task in other["tasks"]:
        task["id"] += "x"
    made.refused("is not a complete record of a run", [json.dumps(good)[:3000]])
    made.refused("is a run of another workflow", [other])
    made.refused("no run to compare", [])
    made.refused("--draws 5: 19 and more", [good], "--draws", 5)
    made.refused("cannot read", [], "--run", "/nonexistent.json", code=3)
    made.refused("give only one of the two", [good], "--", "run", made.path)
    made.refused("give 'run', a workflow and options of 'mosa run' after --", [], "--", "ls")
    made.refused("--record is set by mosa compare itself", [], "--", "run", made.path, "--record", "x.json")
    to_run = ["compare", "--platform", PLATFORM, "--config", "hosts=4,manager=apart", "-o", made.directory / "made", "--", "run", made.path,
              "--cluster", "none", "--dir", made.directory]
    done = run(made.mosa, *to_run)
    check(done.returncode == 3 and "and wrote no record" in done.stderr, f"{done.returncode}: {done.stderr}")
    known = json.loads((made.directory / "made" / "prediction.json").read_text(encoding="utf-8"))
    check(any(c["level"] == "workflow" and c["measured_s"] is None and c["predicted_s"] > 1 for c in known["cells"]), f"{known['cells'][:1]}")
    check(any(r["class"].startswith("manager.") and r["predicted"]["mean_s"] > 0 and not r["measured"] for r in known["requests"]), f"{known['requests'][:1]}")
    for name in ("prediction.json", "run-1.json"):
        done = run(made.mosa, *to_run)
        check(done.returncode == 3 and f"{name} is from an earlier comparison" in done.stderr, f"{done.returncode}: {done.stderr}")
        (made.directory / "made" / "run-1.json").write_text("{}", encoding="utf-8")
        (made.directory / "made" / "prediction.json").unlink(missing_ok=True)
    done = run(made.mosa, "compare", "--run", made.path)
    check(done.returncode == 2 and "--platform is required" in done.stderr, done.stderr)
    words = made.words([good])
    words[words.index("manager=apart")] = "manager=apart,hosts=3"
    done = run(made.mosa, *words)
    check(done.returncode == 2 and "say --config hosts=4" in done.stderr, done.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mosa", required=True)
    mosa = parser.parse_args().mosa
    with tempfile.TemporaryDirectory() as directory:
        made = Comparison(mosa, directory)
        test_clean(made)
        test_slow(made)
        test_partly(made)
        test_unjudged(made)
        test_silent(made)
        test_nothing(made)
        test_sizes(made)
        test_chunks(made)
        test_no_requests(made)
        test_predicted_requests(made)
        test_requests_alone(made)
        test_partly_known_requests(made)
        test_partly_known_totals(made)
        test_busy_machine(made)
        test_refusals(made)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
