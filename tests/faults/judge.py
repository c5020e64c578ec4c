#!/usr/bin/env python3
"""Asks `mosa compare` about kept trials (trials.py), after each run with the fault, and says how often it was right.

  tests/faults/judge.py --mosa build/release/bin/mosa faults.out -o answers.jsonl
  tests/faults/judge.py --answers answers.jsonl --table        # the same table again

Beside it stands what a simple rule would have said: the workflow is slower if its median is above the interval of nine in ten
predicted runs, because of the part whose requests exceeded their prediction by the largest factor.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "netns"))

from cluster import print_table  # noqa: E402

ANOMALY = 7
COST_MIN = 0.1


def compare(mosa, folder, trial, records):
    config = f"hosts={trial['hosts']},slots={trial['slots']},manager=apart,system={trial['system']}"
    words = [mosa, "--json", "compare", "--platform", folder / "platform.json", "--workload", folder / trial["workflow"], "--config", config]
    for record in records:
        words += ["--run", folder / record]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode not in (0, ANOMALY):
        return {"error": done.stderr.strip()}
    return json.loads(done.stdout)


def part_of(requests):
    """What the simple rule blames for a class of requests."""
    if requests["component"] == "manager" or requests["class"].startswith("manager."):
        return ("manager", None)
    if requests["component"] == "mount" and requests["class"].startswith("node."):
        return ("storage node", requests["peer"])
    return ("storage node" if requests["component"] == "storage" else "mount", requests["host"])


def by_simple_rule(answer):
    whole = next(cell for cell in answer["cells"] if cell["level"] == "workflow")
    known = [each for each in answer["requests"] if each["predicted"] and each["measured"] and each["verdict"] != "not judged"
             and each["measured"]["count"] >= 5 and each["predicted"]["mean_s"] > 0]
    known.sort(key=lambda each: each["measured"]["mean_s"] / each["predicted"]["mean_s"], reverse=True)
    return {"found": whole["measured_s"] > whole["predicted_interval_s"][1], "blamed": [[part_of(each)] for each in known[:1]]}


def shortened(answer):
    """What is said, without the tables."""
    if "error" in answer:
        return answer
    finding = answer["finding"]
    causes = [[(each["part"], each["host"]) for each in cause["suspects"]] for cause in finding["causes"]]
    return {"is_slower": finding["is_slower"], "evidence": finding["evidence"], "excess_share": finding["excess_share"], "sentence": finding["sentence"],
            "causes": causes, "simple": by_simple_rule(answer)}


def ask(arguments, trial):
    folder = arguments.out / trial["cluster"]
    before = [each["record"] for each in trial["before"]]
    answers = []
    for count in range(1, len(trial["faulty"]) + 1):
        answers.append(shortened(compare(arguments.mosa, folder, trial, before + [each["record"] for each in trial["faulty"][:count]])))
    return answers


def rank_of(trial, causes):
    """Where what is wrong stands among what is blamed: 1 is first; None: nowhere."""
    for number, suspects in enumerate(causes, start=1):
        for part, host in suspects:
            if any(part == culprit and (not is_of_host or host == trial["sick"]) for culprit, is_of_host in trial["culprits"]):
                return number
    return None


def interval(right, all_of):
    """Wilson's interval at 95 %."""
    if all_of == 0:
        return "-"
    z, share = 1.96, right / all_of
    middle, half = share + z * z / (2 * all_of), z * math.sqrt(share * (1 - share) / all_of + z * z / (4 * all_of * all_of))
    low, high = ((middle + sign * half) / (1 + z * z / all_of) for sign in (-1, 1))
    return f"{right} of {all_of} ({max(0, low):.0%} to {min(1, high):.0%})"


def counts(entries):
    """Of trials: found after one, two and three runs; the right part named first and among three; and the same by the simple rule."""
    last = [(entry["trial"], entry["answers"][-1]) for entry in entries if "error" not in entry["answers"][-1]]
    found = [(trial, answer) for trial, answer in last if answer["is_slower"]]
    ranks = [rank_of(trial, answer["causes"]) for trial, answer in found]
    simple = [(trial, answer["simple"]) for trial, answer in last if answer["simple"]["found"]]
    return [*(sum(entry["answers"][count].get("is_slower", False) for entry in entries) for count in range(3)),
            sum(rank == 1 for rank in ranks), sum(rank is not None and rank <= 3 for rank in ranks),
            len(simple), sum(rank_of(trial, answer["blamed"]) == 1 for trial, answer in simple)]


def rows(entries):
    """By kind, of the trials that cost a tenth or more; all of these; then cheap trials and sound windows."""
    by_kind, costly = collections.defaultdict(list), []
    for entry in entries:
        trial = entry["trial"]
        is_costly = trial["cost"] >= COST_MIN
        by_kind[trial["kind"] if is_costly else "~ nothing wrong" if trial["kind"] == "none" else "~ cheaper"].append(entry)
        if is_costly:
            costly.append(entry)
    if costly:
        by_kind["~ ALL"] = costly
    for kind, all_of_kind in sorted(by_kind.items()):
        costs = sorted(entry["trial"]["cost"] for entry in all_of_kind)
        said = f"{costs[0]:+.0%}" if costs[0] == costs[-1] else f"{costs[0]:+.0%} to {costs[-1]:+.0%}"
        numbers = counts(all_of_kind)
        if kind == "~ ALL":
            numbers = [interval(number, len(all_of_kind)) for number in numbers]
        yield [kind, len(all_of_kind), said, *numbers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, nargs="?")
    parser.add_argument("--mosa", type=pathlib.Path)
    parser.add_argument("-o", "--answers", type=pathlib.Path, required=True)
    parser.add_argument("--table", action="store_true", help="of answers that are there")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    if not arguments.table and not (arguments.out and arguments.mosa):
        parser.error("give the directory of the trials and --mosa, or --table")
    entries = []
    if arguments.table:
        entries = [json.loads(line) for line in arguments.answers.read_text(encoding="utf-8").splitlines()]
    else:
        trials = [json.loads(line) for line in (arguments.out / "trials.jsonl").read_text(encoding="utf-8").splitlines()]
        trials = [trial for trial in trials if "failed" not in trial and (not arguments.only or trial["kind"] in arguments.only)]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, arguments.answers.open("w", encoding="utf-8") as file:
            for trial, answers in zip(trials, pool.map(lambda trial: ask(arguments, trial), trials)):
                file.write(json.dumps({"trial": trial, "answers": answers}) + "\n")
                file.flush()
                entries.append({"trial": trial, "answers": answers})
    print_table(["FAULT", "TRIALS", "COST", "FOUND AFTER 1", "2", "3", "NAMED FIRST", "AMONG 3", "SIMPLE RULE: FOUND", "NAMED FIRST"], list(rows(entries)))


if __name__ == "__main__":
    main()
