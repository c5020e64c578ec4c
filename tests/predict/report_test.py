"""What `mosa report` promises: one page with everything in it and nothing from elsewhere, whatever a record holds; what cannot be
compared is said, and the rest is shown.

Records are simulated, as in compare_test.py. What a browser makes of the page is not tested here.

    report_test.py --mosa PROGRAM
"""

import argparse
import base64
import copy
import html.parser
import json
import pathlib
import tempfile

import compare_test
import envelope_test
from compare_test import PLATFORM, check

HERE = pathlib.Path(__file__).resolve().parent
PARTS = HERE.parent.parent / "tools" / "observe"
EVIL = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>"
MIB = 1 << 20


class Page(html.parser.HTMLParser):
    """A page as a parser of HTML sees it: its elements, and the text of each script."""

    def __init__(self, path):
        super().__init__()
        self.size = path.stat().st_size
        self.text = path.read_text(encoding="utf-8")
        self.elements, self.scripts, self.words = [], [], []
        self.is_script = False
        self.feed(self.text)
        check([dict(a).get("id") for name, a in self.elements if name == "script"] == ["data", None], f"{path}: {self.elements}")

        def refuse(word):
            raise SystemExit(f"FAILED: {path}: {word} is no JSON")

        self.data = json.loads(self.scripts[0], parse_constant=refuse)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, attrs))
        self.is_script = tag == "script"
        if self.is_script:
            self.scripts.append("")

    def handle_endtag(self, _tag):
        self.is_script = False

    def handle_data(self, data):
        if self.is_script:
            self.scripts[-1] += data
        else:
            self.words.append(data)

    def tasks(self):
        tasks = self.data["tasks"]
        lists = {name: len(column) for name, column in tasks.items() if name not in ("stages", "states", "reasons")}
        check(len(set(lists.values())) <= 1, f"columns of one length: {lists}")
        return tasks

    def says(self, expected):
        check(any(expected in note for note in self.data["notes"]), f"expected '{expected}': {self.data['notes']}")


class Reports(compare_test.Comparison):
    def report(self, records, *more, platform=True):
        words = ["report"]
        for record in records:
            self.count += 1
            path = self.directory / f"run-{self.count}.json"
            path.write_text(record if isinstance(record, str) else json.dumps(record), encoding="utf-8")
            words.append(path)
        words += ["--platform", PLATFORM, "--config", "manager=apart", "--draws", 19] if platform else []
        out = self.directory / f"report-{self.count}.html"
        done = compare_test.run(self.mosa, "--json", *words, "-o", out, *more)
        check(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
        answer = json.loads(done.stdout)
        page = Page(out)
        check(answer["bytes"] == page.size and answer["notes"] == page.data["notes"], f"{answer}")
        check(answer["verdict"] in "".join(page.words), f"the verdict is in the page itself: {answer['verdict']}")
        return page, answer


def test_clean(made):
    page, answer = made.report(made.clean)
    check(answer["verdict"].startswith("mixed took ") and "on 4 hosts, predicted " in answer["verdict"]
          and ". Not slower: " in answer["verdict"], answer["verdict"])
    check(page.data["tone"] == "well" and not answer["is_slower"], page.data["tone"])
    tasks = page.tasks()
    check(len(tasks["id"]) == 20 and None not in tasks["start_us"] + tasks["predicted_start_us"], f"{tasks}")
    check(sorted(stage["name"] for stage in page.data["stages"]) == ["make", "sum", "turn"], f"{page.data['stages']}")
    last = made.clean[-1]
    written = sum(file["size_bytes"] for task in last["tasks"] for file in task["outputs"])
    placed = sum(count for nodes in page.data["placement"].values() for count in nodes.values())
    check(placed == written and sum(stage["written"] for stage in page.data["stages"]) == written, f"{placed} of {written}")
    moved = sum(count for nodes in page.data["traffic"]["written"].values() for count in nodes.values())
    check(abs(moved - written) < 100, f"{moved} of {written}")
    check(page.data["traffic"]["predicted_read"], "what is predicted to be read")
    compared = json.loads(compare_test.run(made.mosa, "--json", *made.words(made.clean, "--draws", 19)).stdout)
    whole = compare_test.cell(compared, "workflow", "mixed")
    check(compare_test.cell(page.data["comparison"], "workflow", "mixed") == whole, "it is what mosa compare says")


def test_alone(made):
    """The page has all its parts in it and asks for nothing."""
    page, _ = made.report(made.clean[:1], platform=False)
    for part in ("css", "js"):
        check((PARTS / f"report_page.{part}").read_text(encoding="utf-8") in page.text, f"report_page.{part} is in the page")
    check(page.scripts[0] in page.text and "{{" not in page.text.replace(page.scripts[0], ""), "no part is left out")
    check(not any(name in ("link", "img", "iframe") or "src" in dict(attrs) for name, attrs in page.elements), f"{page.elements}")
    policy = [dict(a)["content"] for name, a in page.elements if name == "meta" and dict(a).get("http-equiv") == "Content-Security-Policy"]
    check(policy and policy[0].startswith("default-src 'none'"), f"{policy}")
    page.says("no prediction: give the platform file")
    check("comparison" not in page.data and "predicted_host" not in page.tasks() and page.data["tone"] == "plain", "nothing is predicted")
    check("Nothing is predicted." in "".join(page.words), "the verdict says so")


def test_slow(made):
    runs = [compare_test.slower(r, lambda _, a: a["end"] - a["start"] if a["host"] == "h3" else 0) for r in made.clean]
    page, answer = made.report(runs)
    finding = page.data["comparison"]["finding"]
    check(answer["is_slower"] and ". Slower: " in answer["verdict"] and finding["sentence"] in answer["verdict"], answer["verdict"])
    first = finding["causes"][0]
    check(page.data["tone"] == "off" and "h3" in first["sentence"] and first["open_first"], f"{first}")


def test_busy_machine(made):
    """Neither well nor off."""
    runs = [compare_test.slower(r, lambda _, a: 0.5 * (a["end"] - a["start"])) for r in made.clean]
    page, answer = made.report([compare_test.busy(record, 0.35) for record in runs])
    check(not answer["is_slower"], answer["verdict"])
    check(page.data["tone"] == "plain" and page.data["comparison"]["machine_busy"], page.data["tone"])
    page.says("machine busy: the processors of h1, h2, h3 and h4 were 35 % busy with other work")


def test_hostile(made):
    """Bytes of a record are text, wherever they come out."""
    record = copy.deepcopy(made.clean[0])
    record["workflow"]["name"] = EVIL
    record["versions"] = {"mosa": EVIL}
    for task in record["tasks"]:
        task["id"] = task["stage"] = EVIL + task["id"]
        task["outputs"][0]["nodes"] = {EVIL: 5}
    record["tasks"][0]["attempts"].insert(0, {**record["tasks"][0]["attempts"][0], "failure": EVIL, "exit_code": 1})
    page, _ = made.report([record])
    check(all(name.startswith(EVIL) for name in page.tasks()["id"]), f"{page.tasks()['id']}")
    check(page.data["failed"][0]["failure"] == EVIL and ["run: mosa", EVIL] in page.data["versions"], f"{page.data['failed']}")
    page.says("no prediction: ")
    check(page.scripts[1] in page.text and EVIL not in page.text and "<img" not in page.text.replace(page.scripts[1], ""), "it is escaped")
    for strange in ({"tasks": [None, 7, {}, {"id": 3, "attempts": "x"}]}, {"tasks": [], "hosts_lost": 3, "residence": [], "versions": 1},
                    {"turnaround_seconds": "long", "outcome": None, "end": 1e300}, {"outcome": "running"}):
        made.report([{**record, **strange}], platform=False)
    record["tasks"][0]["outputs"][0]["size_bytes"] = 1 << 63
    made.report([record], platform=False)[0].says("1 files have an impossible size")
    deep = "[" * 200_000 + "]" * 200_000
    text = json.dumps(made.clean[0])
    for word in ('"kept": false', '"version": 1', '"size_bytes": '):
        at = text.index(word)
        path = made.directory / "deep.json"
        path.write_text(f"{text[:at]}{word.split(':', maxsplit=1)[0]}: {deep}, {text[at:]}", encoding="utf-8")
        for words in (["report", path, "-o", made.directory / "none.html"], ["compare", "--platform", PLATFORM, "--run", path]):
            done = compare_test.run(made.mosa, *words)
            check(done.returncode == 2 and "more than 64 deep" in done.stderr, f"{done.returncode}: {done.stderr}")


def test_resumed(made):
    """Tasks that an earlier run did are done, and what it moved and failed in is not this one's."""
    record = copy.deepcopy(made.clean[0])
    whole, _ = made.report([record], platform=False)
    for task in record["tasks"][:-1]:
        task["kept"] = True
        task["attempts"][0].update(start=record["start"] - 100, end=record["start"] - 90, input_bytes_local=MIB)
        task["attempts"].insert(0, {**task["attempts"][0], "failure": "exit code 1", "exit_code": 1})
    page, answer = made.report([record], platform=False)
    check(answer["verdict"].startswith("mixed took ") and page.data["tone"] == "plain", answer["verdict"])
    check([sum(stage[key] for stage in page.data["stages"]) for key in ("tasks", "done")] == [20, 20], f"{page.data['stages']}")
    written = sum(file["size_bytes"] for file in record["tasks"][-1]["outputs"])
    check([sum(stage[key] for stage in page.data["stages"]) for key in ("local", "written")] == [0, written], f"{page.data['stages']}")
    moved = sum(count for nodes in page.data["traffic"]["written"].values() for count in nodes.values())
    check(abs(moved - written) < 100 and not page.data["failed"], f"{moved} of {written}, {page.data['failed']}")
    check(page.data["placement"] == whole.data["placement"], "files lie where they lie")
    check([page.tasks()["start_us"].count(None), len(page.data["notes"])] == [19, 2], f"{page.data['notes']}")


def test_rules(made):
    """Predicted is a run with the rules that the run had."""
    rules = made.directory / "rules.json"
    record = {**made.clean[0], "rules": str(rules)}
    page, _ = made.report([record])
    page.says("the run's rules")
    check("comparison" in page.data, "it is predicted without")
    rules.write_text("no rules", encoding="utf-8")
    made.report([record])[0].says(f"no prediction: {rules}")


def test_wrong_words(made):
    """What the command line has wrong is no note on a page."""
    made.report(made.clean[:1], platform=False)
    path, out = made.directory / f"run-{made.count}.json", made.directory / "none.html"
    for code, *words in ((3, "--platform", "typo.json"), (2, "--platform", path), (2, "--platform", PLATFORM, "--config", "hosts=abc"),
                         (3, "--platform", PLATFORM, "--rules", "typo.yaml"), (3, "--workload", "typo.json")):
        done = compare_test.run(made.mosa, "report", path, "-o", out, *words)
        check(done.returncode == code and not out.exists(), f"{words}: {done.returncode}: {done.stderr}")


def test_partly(made):
    lost, stepped, failed, links = (copy.deepcopy(made.clean[1]) for _ in range(4))
    lost.update(hosts_lost=["h4"])
    stepped["tasks"][0]["attempts"][0]["end"] = stepped["tasks"][0]["attempts"][0]["start"] - 5
    failed.update(outcome="failed")
    failed["tasks"][-1].update(state="failed")
    failed["tasks"][-1]["attempts"][-1].update(failure="exit code 1: no such thing", exit_code=1)
    for host in links["hosts"]:
        host["link_bytes_per_second"] = 125_000_000
    for record, expected in ((lost, "the run lost h4"), (stepped, "1 tasks have impossible times"), (failed, "the run is 'failed'"),
                             (links, "was it measured on another deployment?")):
        page, answer = made.report([record])
        page.says(expected)
        cell = compare_test.cell(page.data["comparison"], "tasks", "turn")
        check(cell["runs"] == 1 and not answer["is_slower"], f"{expected}: the rest is compared: {cell}")
    check([host["lost"] for host in made.report([lost], platform=False)[0].data["hosts"]] == [False, False, False, True], "who is lost")
    page, answer = made.report([failed], platform=False)
    check("ended as 'failed'" in answer["verdict"] and "19 of 20 tasks done" in answer["verdict"], answer["verdict"])
    check(page.data["failed"][0]["failure"].startswith("exit code 1") and page.data["tone"] == "off", f"{page.data['failed']}")
    page, _ = made.report([made.clean[0]], "--config", "hosts=3,manager=apart", platform=False)
    page, _ = made.report([made.clean[0]], "--platform", PLATFORM, "--config", "hosts=3", platform=False)
    page.says("no prediction: the prediction is of 3 hosts")
    check(len(page.tasks()["id"]) == 20, "the run is shown all the same")


def test_cut(made):
    """A record that ends in the middle is shown as far as it goes."""
    text = json.dumps(made.clean[0], indent=1, sort_keys=True)
    cut = text[:text.index('"id": "sum_0"')]
    page, answer = made.report([cut], "--workload", made.path)
    page.says("ends in the middle: the 16 tasks before that are shown")
    check(len(page.tasks()["id"]) == 16 and "cut short, 16 tasks" in answer["verdict"], answer["verdict"])
    check(compare_test.cell(page.data["comparison"], "tasks", "turn")["runs"] == 1, "the rest is compared")
    made.report([cut])[0].says("does not say which workflow was run: give it as --workload")
    page, _ = made.report([text[:300], made.clean[1]])
    page.says("left out")
    check(len(page.tasks()["id"]) == 20, "the other is shown")
    for nothing in (text[:300], "", "[]", "{}", "7"):
        made.count += 1
        path = made.directory / f"run-{made.count}.json"
        path.write_text(nothing, encoding="utf-8")
        done = compare_test.run(made.mosa, "report", path, "-o", made.directory / "none.html")
        check(done.returncode == 2 and "is not a complete record" in done.stderr, f"{done.returncode}: {done.stderr}")
        check(not (made.directory / "none.html").exists(), "no page of nothing")


def daemon(component, host, requests, totals, taken_s=0, failure="", truncated=False):
    return {"component": component, "host": host, "id": host, "failure": failure, "since_start": False, "started_ns": 1,
            "taken_ns": int((compare_test.BEGUN + taken_s) * 1e9), "truncated": truncated, "requests": requests, "totals": totals, "now": {}}


def test_daemons(made):
    """Counters and times of daemons, those that did not answer, and clocks that disagree."""
    record = copy.deepcopy(made.clean[0])
    limit_ns = 9 << 17  # Of a bucket that begins at 2^20 ns.
    rows = {host: [{"class": "fuse.read", "peer": "", "sum_ns": total << 20, "max_ns": limit_ns, "buckets": [[limit_ns, count]]}]
            for host, count, total in (("h1", 100, 100), ("h2", 300, 330))}
    totals = {"bytes_read_local": 5 * MIB, "bytes_written_passthrough": MIB, "opens_passthrough": 3, "opens": 4}
    record["residence"] = {"cluster": "lab", "names": {}, "rows_left_out": 1234, "daemons": [
        daemon("manager", "-", [], {}), daemon("storage", "h1", [], {"bytes_read_remote": 7}),
        daemon("mount", "h1", rows["h1"], totals), daemon("mount", "h2", rows["h2"], totals, taken_s=3600),
        daemon("mount", "h3", [], {}, failure="it does not answer"), daemon("mount", "h4", [], {}, truncated=True)]}
    page, _ = made.report([record], platform=False)
    page.says("the mount of h2 (+3600 s)")
    page.says("what the mount of h3 counted is not known: it does not answer")
    page.says("1234 smaller ones are not")
    page.says("the mount of h4 had more classes and peers")
    row, = page.data["requests"]
    check((row["class"], row["count"], row["slowest_host"]) == ("fuse.read", 400, "h2") and row["p50_us"] > 1000, f"{row}")
    check(page.data["counters"]["mount"]["h1"] == totals and page.data["counters"]["storage"]["h1"]["bytes_read_remote"] == 7,
          f"{page.data['counters']}")
    check("h3" not in page.data["counters"]["mount"] and page.data["counters"]["mount"]["h4"] == {}, f"{page.data['counters']}")
    made.report(made.clean[:1], platform=False)[0].says("does not say which way bytes went")
    known = compare_test.simulated(made.mosa, made.path, 77, residence=True)
    page, _ = made.report([known])
    rows = {(row["component"], row["class"]): row for row in page.data["requests"]}
    for name in (("mount", "node.write"), ("storage", "write"), ("manager", "commit")):
        check(rows[name]["predicted_count"] > 0 and rows[name]["predicted_mean_us"] > 0, f"{rows[name]}")
    record["residence"] = {"failure": "no manager"}
    made.report([record], platform=False)[0].says("the daemons were not asked: no manager")


def test_envelope(made):
    """Pictures are on the page as data, which no script can be in."""
    rates = made.directory / "envelope.json"
    rates.write_text(json.dumps(envelope_test.rates([1, 2, 4])), encoding="utf-8")
    page, _ = made.report(made.clean[:1], "--envelope", rates, platform=False)
    kind, _, picture = page.data["envelope"].partition(",")
    check(kind == "data:image/svg+xml;base64" and b"hand: growth over the fewest clients" in base64.b64decode(picture), kind)


def test_large(made):
    """The page of 10,000 tasks is small enough for a mail, with room for what is predicted of them."""
    hosts = [f"host-{i:02}" for i in range(20)]
    begun = float(compare_test.BEGUN)
    tasks = []
    for i in range(10_000):
        host, at = hosts[i % 20], begun + (i // 40) * 0.73

        def file(path, i=i):
            return {"path": path, "size_bytes": 3 * MIB + i, "mtime_ns": 1, "nodes": {hosts[(i + k) % 20]: MIB for k in range(3)}}

        attempt = {"host": host, "start": at, "end": at + 0.5 + i % 7 / 30, "exit_code": 0, "placed": "it holds most of its bytes",
                   "input_bytes_local": MIB + i, "input_bytes_remote": 2 * MIB}
        tasks.append({"id": f"a_stage_with_a_name_{i // 1000}_{i:05}", "stage": f"a_stage_with_a_name_{i // 1000}", "state": "done",
                      "kept": False, "digest": "0", "command": ["x"], "inputs": [file(f"in/{i}")], "outputs": [file(f"out/{i}")],
                      "attempts": [attempt]})
    record = {"version": 1, "workflow": {"name": "large", "path": "/large.json"}, "system": "wass", "outcome": "done", "start": begun,
              "end": begun + 200, "turnaround_seconds": 200.0, "hosts_lost": [], "tasks": tasks,
              "hosts": [{"name": host, "slots": 2, "mount": "/mnt", "link_bytes_per_second": 25_000_000} for host in hosts]}
    page, _ = made.report([record], platform=False)
    print(f"  10,000 tasks: {page.size} bytes")
    # Of more than there is room for, though all took as long, or none has begun.
    waiting = {**tasks[0], "id": "w", "state": "waiting", "inputs": [], "outputs": [], "attempts": []}
    begun_at = {"host": hosts[0], "start": begun, "end": begun + 0.5}
    even = {**waiting, "state": "done", "attempts": [begun_at]}
    longest = {**even, "id": "longest", "attempts": [{**begun_at, "end": begun + 2}]}
    for many, timed in (([even] * 31_000, 30_000), ([waiting] * 31_000, 1), ([waiting] * 30_000 + [even] * 1_000, 1_001)):
        tasks_of, _ = made.report([{**record, "tasks": [*many, longest]}], platform=False)
        starts = tasks_of.tasks()["start_us"]
        check(len(starts) == 30_000 and len(starts) - starts.count(None) == timed and "longest" in tasks_of.tasks()["id"],
              f"{len(starts)} tasks, {starts.count(None)} without times")
        tasks_of.says(f"{len(many) + 1 - 30_000} tasks are not drawn")
    check(page.size < 7_000_000 and len(page.tasks()["id"]) == 10_000, f"{page.size} bytes, {len(page.tasks()['id'])} tasks")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mosa", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        made = Reports(arguments.mosa, directory)
        for name, test in sorted(globals().items()):
            if name.startswith("test_"):
                print(name, flush=True)
                test(made)


if __name__ == "__main__":
    main()
