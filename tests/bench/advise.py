#!/usr/bin/env python3
"""What `mosa advise` promises of Montage, and what the run then gains: predicted beside measured.

  tests/bench/advise.py --bin build/release/bin --out advise.out
  tests/bench/advise.py --bin build/release/bin --platform lab.json --tiles 25

1. A cluster of one host runs Montage once, one task at a time, and is traced: what programs compute and read, whatever
   store they run on.
2. On a cluster of --hosts hosts `mosa identify` measures the platform (--platform FILE: it was measured already), and
   `mosa advise` advises from the trace and the record. Its answer is written to --out before anything else runs.
3. The workflow runs --repeats times each without hints and locations (dss), as `mosa run` does by itself, and with the
   advised rules, in turns. Every run begins with an empty store. Compared are medians.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from cluster import Cluster, Failed, check, print_table, why_not  # noqa: E402

SYSTEMS = {"dss": ["--system", "dss"], "by_itself": [], "advised": ["--rules"]}


def run(*command, limit_s=580, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=limit_s, check=False,
                          **options)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr.strip()[-1500:]}")
    return done.stdout


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


class Montage:
    def __init__(self, arguments):
        self.mosa, self.out = arguments.bin / "mosa", arguments.out
        self.directory = arguments.out / "montage"
        shutil.rmtree(self.directory, ignore_errors=True)
        run(sys.executable, HERE.parents[1] / "tools/workflows/montage.py", "--mosa", self.mosa, "--write", self.directory,
            "--tiles", arguments.tiles, "--width", arguments.width, "--height", arguments.height)
        self.workflow = self.directory / "montage.json"

    def run(self, store, name, *flags):
        """The record of a run in an empty store, and what hosts have sent for it."""
        mount = pathlib.Path(store.mount("h1"))
        for path in mount.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in (self.directory / "inputs").iterdir():
            shutil.copy(path, mount)
        record = self.out / f"{name}.run.json"
        before = sent_bytes(store)
        run(self.mosa, "run", self.workflow, "--cluster", store.name, "--dir", store.directory, "--slots", 1, "--retries", 0,
            "--record", record, *flags)
        sent = sent_bytes(store) - before
        return json.loads(record.read_text(encoding="utf-8")), sent


def sent_bytes(store):
    total = 0
    for host in store.hosts:
        for line in store.exec(host, "cat", "/proc/net/dev").stdout.splitlines()[2:]:
            name, _, numbers = line.partition(":")
            total += 0 if name.strip() == "lo" else int(numbers.split()[8])
    return total


def seconds_of(record):
    tasks = record["tasks"]
    return max(task["end"] for task in tasks) - min(task["start"] for task in tasks)


def see(arguments, montage):
    traces = arguments.out / "traces"
    shutil.rmtree(traces, ignore_errors=True)
    traces.mkdir()
    with Cluster(arguments.bin, 1, ram=arguments.ram) as store:
        where = ["--name", store.name, "--dir", store.directory]
        run(montage.mosa, "trace", "start", "-o", traces, *where)
        montage.run(store, "seen", "--system", "dss")
        run(montage.mosa, "trace", "stop", *where)
    return sorted(traces.iterdir())


def advise(arguments, montage, store, traces):
    platform = arguments.platform
    if not platform:
        platform = arguments.out / "platform.json"
        run(montage.mosa, "identify", "--cluster", store.name, "--dir", store.directory, "-o", platform)
    rules, answer = arguments.out / "rules.yaml", arguments.out / "advice.json"
    words = [montage.mosa, "--json", "advise", "--platform", platform, "--record", arguments.out / "seen.run.json", *traces,
             "--config", f"hosts={arguments.hosts},manager=apart,slots=1"]
    answer.write_text(run(*words, "-o", rules), encoding="utf-8")
    return json.loads(answer.read_text(encoding="utf-8")), rules


def measure(arguments, montage, store, rules):
    measured = {system: [] for system in SYSTEMS}
    for repeat in range(arguments.repeats):
        for system, flags in SYSTEMS.items():
            more = [rules] if system == "advised" else []
            record, sent = montage.run(store, f"{system}-{repeat}", *flags, *more)
            measured[system].append({"seconds": seconds_of(record), "sent_bytes": sent})
            print(f"{system} {repeat}: {measured[system][-1]}", file=sys.stderr, flush=True)
    return measured


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
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("advise.out"))
    parser.add_argument("--platform", type=pathlib.Path, help="instead of `mosa identify`")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--ram", default="1G")
    parser.add_argument("--tiles", type=int, default=16)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--height", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    reason = why_not()
    if reason:
        sys.exit(f"advise.py: {reason}")
    arguments.bin, arguments.out = arguments.bin.resolve(), arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        montage = Montage(arguments)
        traces = see(arguments, montage)
        with Cluster(arguments.bin, arguments.hosts, rate=arguments.rate, ram=arguments.ram) as store:
            advice, rules = advise(arguments, montage, store, traces)
            show_hints(advice)
            measured = measure(arguments, montage, store, rules)
        (arguments.out / "measured.json").write_text(json.dumps(measured, indent=1), encoding="utf-8")
        show(advice, measured)
    except Failed as error:
        sys.exit(f"advise.py: {error}")


if __name__ == "__main__":
    main()
