#!/usr/bin/env python3
"""Asks `mosa compare` about kept trials (trials.py), after each run with the fault, and says how often it was right.

  tests/faults/judge.py --mosa build/release/bin/mosa faults.out -o answers.jsonl
"""

import argparse
import collections
import concurrent.futures
import json
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


def shortened(answer):
    """What is said, without the tables."""
    if "error" in answer:
        return answer
    finding = answer["finding"]
    causes = [[(each["part"], each["host"]) for each in cause["suspects"]] for cause in finding["causes"]]
    blamed = answer["anomalies"][0]["blamed"] if answer["anomalies"] else answer["blamed"]
    return {"is_slower": finding["is_slower"], "evidence": finding["evidence"], "excess_share": finding["excess_share"], "sentence": finding["sentence"],
            "causes": causes, "diagnoses": finding["diagnoses"], "by_rules": {"found": bool(answer["anomalies"]), "blamed": [
                [(each["part"], each["host"])] for each in blamed[:3]]}}


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


def rows(entries):
    """By kind, of the trials that cost a tenth or more: found after so many runs, and named first. Sound windows and cheap trials last."""
    by_kind = collections.defaultdict(list)
    for entry in entries:
        trial = entry["trial"]
        by_kind[trial["kind"] if trial["cost"] >= COST_MIN else "nothing wrong" if trial["kind"] == "none" else "cheap"].append(entry)
    for kind, all_of_kind in sorted(by_kind.items()):
        last = [(entry["trial"], entry["answers"][-1]) for entry in all_of_kind if "error" not in entry["answers"][-1]]
        after = [sum(entry["answers"][count].get("is_slower", False) for entry in all_of_kind) for count in range(3)]
        yield [kind, len(all_of_kind), ", ".join(f"{entry['trial']['cost']:+.0%}" for entry in all_of_kind), *after,
               sum(rank_of(trial, answer["causes"]) == 1 for trial, answer in last),
               sum(answer["by_rules"]["found"] for _, answer in last),
               sum(answer["by_rules"]["found"] and rank_of(trial, answer["by_rules"]["blamed"]) == 1 for trial, answer in last)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mosa", type=pathlib.Path, required=True)
    parser.add_argument("-o", "--answers", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    trials = [json.loads(line) for line in (arguments.out / "trials.jsonl").read_text(encoding="utf-8").splitlines()]
    trials = [trial for trial in trials if "failed" not in trial and (not arguments.only or trial["kind"] in arguments.only)]
    entries = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, arguments.answers.open("w", encoding="utf-8") as file:
        for trial, answers in zip(trials, pool.map(lambda trial: ask(arguments, trial), trials)):
            file.write(json.dumps({"trial": trial, "answers": answers}) + "\n")
            file.flush()
            entries.append({"trial": trial, "answers": answers})
    print_table(["FAULT", "TRIALS", "COST", "FOUND AFTER 1", "2", "3", "NAMED FIRST", "BY RULES: FOUND", "NAMED FIRST"], list(rows(entries)))


if __name__ == "__main__":
    main()
