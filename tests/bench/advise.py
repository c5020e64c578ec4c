#!/usr/bin/env python3
"""What `mosa advise` promises of Montage, and what the run then gains: predicted beside measured.

  tests/bench/advise.py --bin build/release/bin --output advise.out
  tests/bench/advise.py --bin build/release/bin --platform lab.json --tiles 25

1. A cluster of one host runs Montage once, one task at a time, and is traced: what programs compute and read, whatever
   store they run on.
2. On a cluster of --hosts hosts `mosa identify` measures the platform (--platform FILE: it was measured already), and
   `mosa advise` advises from that. Its answer is written to --output before anything else runs.
3. The workflow runs --repeats times each without hints and locations (dss), as `mosa run` does by itself, and with the
   advised rules, in turns. Every run begins with an empty store. Compared are medians.
"""

import argparse
import json
import pathlib
import sys
from statistics import median

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from applications import Application, run_in_turns  # noqa: E402
from cluster import Cluster, print_table, why_not  # noqa: E402
from harness import TROUBLE, end_as_interrupted, run  # noqa: E402


def advise(application, platform, seen, config):
    """What `mosa advise` says, and the path of its rules; both are written before anything else runs."""
    rules, answer = (application.out / f"{application.name}.{name}" for name in ("rules.yaml", "advice.json"))
    if not (application.resume and answer.exists()):
        text = run(application.mosa, "--json", "advise", "--platform", platform, *seen, "--config", config, "-o", rules)
        answer.write_text(text, encoding="utf-8")
    return json.loads(answer.read_text(encoding="utf-8")), rules


def jobs_of(application, rules):
    """For run_in_turns(): without hints and locations, as `mosa run` does by itself, and as advised."""
    flags = {"dss": ["--system", "dss"], "by_itself": [], "advised": ["--rules", rules]}
    return {system: (application, words) for system, words in flags.items()}


def show_hints(advice):
    rows = []
    for each in advice["hints"] + advice["left_out"]:
        low, high = each["gain"]["interval_s"]
        rows.append([each["stage"], each["use"], each["files"], f"{each['gain']['seconds']:.3f}", f"{low:.3f} to {high:.3f}",
                     each["hints"], "kept" if "rules" in each else "left out", each["reason"] or ""])
    print_table(["STAGE", "READ AS", "FILES", "SAVES S", "NINE OF TEN", "HINTS", "ADVICE", "WHY"], rows)


def show(advice, measured):
    rows = []
    for system, runs in measured.items():
        predicted, seconds = advice["runs"][system], [each["seconds"] for each in runs]
        low, high = predicted["turnaround_interval_s"]
        middle = median(seconds)
        rows.append([system, f"{predicted['turnaround_median_s']:.2f}", f"{low:.2f} to {high:.2f}", f"{middle:.2f}",
                     f"{min(seconds):.2f} to {max(seconds):.2f}", f"{predicted['turnaround_median_s'] / middle - 1:+.1%}",
                     f"{predicted['bytes_over_network'] / 1e6:.1f}", f"{median(e['sent_bytes'] for e in runs) / 1e6:.1f}"])
    print_table(["RUN", "PREDICTED S", "NINE OF TEN", "MEASURED S", "LEAST TO MOST", "ERROR", "MB SENT, P", "MB SENT, M"], rows)
    rows = []
    for other in ("dss", "by_itself"):
        gain = advice[f"gain_over_{other}"]
        # Runs of one turn are of the same minutes.
        gained = [a["seconds"] - b["seconds"] for a, b in zip(measured[other], measured["advised"])]
        low, high = gain["interval_s"]
        rows.append([f"over {other}", f"{gain['seconds']:.2f}", f"{low:.2f} to {high:.2f}", f"{median(gained):.2f}",
                     f"{min(gained):.2f} to {max(gained):.2f}", "yes" if low <= median(gained) <= high else "no"])
    print_table(["GAIN", "PROMISED S", "NINE OF TEN", "MEASURED S", "LEAST TO MOST", "INSIDE"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the directory of mosa and its daemons")
    parser.add_argument("-o", "--output", dest="out", type=pathlib.Path, default=pathlib.Path("advise.out"))
    parser.add_argument("--platform", type=pathlib.Path, help="instead of `mosa identify`")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--ram", default="1G")
    parser.add_argument("--tiles", type=int, default=16)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--height", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    end_as_interrupted()
    reason = why_not()
    if reason:
        sys.exit(f"advise.py: {reason}")
    arguments.bin, arguments.out = arguments.bin.resolve(), arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        montage = Application(arguments.bin / "mosa", arguments.out, "montage", "--tiles", arguments.tiles, "--width",
                              arguments.width, "--height", arguments.height)
        seen = montage.see(arguments.bin, arguments.ram)
        with Cluster(arguments.bin, arguments.hosts, rate=arguments.rate, ram=arguments.ram) as store:
            platform = arguments.platform
            if not platform:
                platform = arguments.out / "platform.json"
                run(montage.mosa, "identify", "--cluster", store.name, "--dir", store.directory, "-o", platform)
            advice, rules = advise(montage, platform, seen, f"hosts={arguments.hosts},manager=apart,slots=1")
            show_hints(advice)
            measured = run_in_turns(store, jobs_of(montage, rules), arguments.repeats)
        (arguments.out / "measured.json").write_text(json.dumps(measured, indent=1), encoding="utf-8")
        show(advice, measured)
    except (*TROUBLE, KeyboardInterrupt) as error:
        sys.exit(f"advise.py: {str(error) or 'interrupted'}")


if __name__ == "__main__":
    main()
