"""`mosa identify` on a real cluster: a platform file that `mosa predict` reads, with intervals; bad input is one sentence;
nothing is left behind.

    identify_test.py --bin DIRECTORY
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

import cluster  # noqa: E402
from cluster import check  # noqa: E402

WORKLOAD = HERE / "pipeline.yaml"
RATE_BYTES = 400e6 / 8


def run(program, *words, limit_s=60):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MOSA_")}
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=limit_s, env=environment, check=False)


def refused(program, expected, code, *words):
    done = run(program, "identify", *words)
    lines = done.stderr.strip().split("\n")
    check(done.returncode == code, f"{words} ended with {done.returncode}, not {code}: {done.stderr}")
    check(len(lines) == 1 and expected in lines[0] and not done.stdout, f"expected '{expected}': {done.stderr}{done.stdout}")


def check_file(path, hosts):
    platform = json.loads(path.read_text(encoding="utf-8"))
    check(platform["by"].startswith("mosa identify ") and platform["machine"] and platform["measured"].endswith("UTC"), "who, what, when")
    names = [m["what"] for m in platform["measurements"]]
    check(len(names) == len(set(names)) > 20, f"measurements: {names}")
    for row in platform["measurements"]:
        check(row["samples"] >= 1 and (row["interval_95"] is None) == (row["samples"] == 1), f"{row}")
        low, high = row["interval_95"] or (row["mean"], row["mean"])
        check(low <= row["mean"] <= high, f"{row}")
    for figure in platform["figures"]:
        section, field, part = figure["name"].split(".")
        low, high = figure["interval_95"]
        check(abs(platform[section][field][part] / figure["value"] - 1) < 1e-3 and low < figure["value"] < high, f"{figure}")
    for section in ("manager", "client", "node"):
        for name, cost in platform[section].items():
            check(not isinstance(cost, dict) or 0 < cost["spread"] <= 1, f"{section}.{name} is not said to be exact: {cost}")
    check(0 < platform["model"]["spread"] <= 1, f"the model is not said to be exact: {platform['model']}")
    check(platform["shared_cores"] == (len(os.sched_getaffinity(0)) if hosts > 1 else 0), f"shared cores: {platform['shared_cores']}")
    return platform


def measured(program, budget, path, *words):
    """Measures with `budget` seconds, or three times that where a busy machine lets it measure no figure in that time. Returns what it
    said."""
    for seconds in (budget, 3 * budget):
        begin = time.monotonic()
        done = run(program, "identify", *words, "--budget", seconds, "-o", path)
        taken = time.monotonic() - begin
        # What has begun may take its time where the machine is busy; without the budget it would measure for minutes.
        check(taken < seconds + 20, f"a budget of {seconds} s took {taken:.1f} s")
        if done.returncode != 3:
            break
        last = done.stderr.strip().split("\n")[-1]
        check("figures could be measured" in last and f"--budget {seconds})" in last and not done.stdout, f"refused: {done.stderr}")
        check(not path.exists(), "a file that holds guesses only is not written")
    check(done.returncode == 0, f"identify {words}: {done.stderr}")
    return done.stderr


def predict(program, path, config):
    done = run(program, "--json", "predict", "--platform", path, "--workload", WORKLOAD, "--config", config)
    check(done.returncode == 0, f"predict with {path}: {done.stderr}")
    answer = json.loads(done.stdout)
    low, high = answer["turnaround_interval_s"]
    check(answer["failure"] is None and low < answer["turnaround_s"] < high, f"{answer['failure']}, {low} to {high}")


def test_cluster(store, program, directory):
    path = directory / "cluster.json"
    said = measured(program, 12, path, "--name", store.name, "--dir", store.directory)
    platform = check_file(path, 2)
    check(not platform["notes"] or platform["notes"][0] in said, f"what fell short is said: {said}")
    told = [f["name"] for f in platform["figures"] if f["measured"]]
    used = [m["what"] for m in platform["measurements"] if "modelled" in m]
    check(told and used, f"figures rest on measurements: {told} on {used}")
    wide = [m["what"] for m in platform["measurements"] if not m["within_5_percent"]]
    check(bool(wide) == any("no 95 % interval within 5 %" in note for note in platform["notes"]), f"{wide}: {platform['notes']}")
    rate = platform["host"]["out_bytes_per_second"]
    streams = [m for m in platform["measurements"] if m["what"].startswith("stream from")]
    check(not streams or 0.7 * RATE_BYTES < rate < 1.1 * RATE_BYTES, f"a link of {RATE_BYTES:.0f} B/s is found to carry {rate}")
    # The links' buckets hold 256 KB.
    burst = [m for m in platform["measurements"] if m["what"].startswith("stream after a pause") and m["interval_95"]]
    check(not burst or platform["network"]["burst_bytes"] < 600_000, f"a burst of 256 KB is found to be {platform['network']}")
    predict(program, path, "hosts=4")
    for host in store.hosts:
        left = os.listdir(store.mount(host))
        check(not [name for name in left if "identify" in name], f"left on {host}: {left}")


def left_on(store):
    return {name for host in store.hosts for name in os.listdir(store.mount(host)) if "identify" in name}


def interrupted(store, program, directory, stopped, *flags):
    """Ends it by a signal while it measures, with so many of its hosts' processes stopped: what it says, what is left."""
    path = directory / "interrupted.json"
    words = [program, "identify", "--name", store.name, "--dir", store.directory, "--budget", 60, "-o", path, *flags]
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        cluster.wait_until(lambda: left_on(store), 20, "its directory")
        time.sleep(1)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        workers = [int(pid) for pid in children if "identify-worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_text(encoding="ascii")]
        check(len(workers) >= 2, f"a process for each host: {workers}")
        for pid in workers[:stopped]:
            os.kill(pid, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()
    check(process.returncode != 0 and "interrupted" in said and not path.exists(), f"ended with {process.returncode}: {said}")
    return said, left_on(store)


def test_interrupted_cluster(store, program, directory):
    said, left = interrupted(store, program, directory, 0)
    check(not left and "is left" not in said, f"left: {left}; {said}")
    said, left = interrupted(store, program, directory, 1)
    check(not left and "is left" not in said, f"another host removes it: {left}; {said}")
    said, left = interrupted(store, program, directory, 2, "--hosts-max", 2)
    check(len(left) == 1 and f"{left.pop()} is left" in said, f"what nobody can remove is named: {said}")
    for name in left_on(store):
        shutil.rmtree(pathlib.Path(store.mount(store.hosts[0])) / name)


def test_vanishing(_, program, directory):
    """The path goes while it is measured."""
    place = directory / "vanishing"
    place.mkdir()

    def remove():
        time.sleep(1.5)
        place.rename(directory / "elsewhere")

    remover = threading.Thread(target=remove)
    remover.start()
    refused(program, "is gone", 3, "--path", place, "--budget", 20, "-o", directory / "vanished.json")
    remover.join()
    check(not (directory / "vanished.json").exists(), "no file of half a measurement")


def test_path(_, program, directory):
    place = directory / "plain"
    place.mkdir()
    path = directory / "path.json"
    measured(program, 6, path, "--path", place, "--path", place)
    check_file(path, 2)
    predict(program, path, "hosts=1,placement=local")
    check(not os.listdir(place), f"left: {os.listdir(place)}")
    other = path.read_text(encoding="utf-8").replace('"mosa_platform": 4', '"mosa_platform": 9')
    path.write_text(other, encoding="utf-8")
    done = run(program, "predict", "--platform", path, "--workload", WORKLOAD)
    check(done.returncode == 2 and "has version 9, but this program reads" in done.stderr, done.stderr)


def test_interrupt(_, program, directory):
    """Ctrl-C ends it at once, and nothing is left."""
    place = directory / "interrupted"
    place.mkdir()
    out = directory / "interrupted.json"
    child = subprocess.Popen([program, "identify", "--path", str(place), "--budget", "30", "-o", str(out)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    cluster.wait_until(lambda: os.listdir(place), 10, "something is measured")
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=10)
    check(child.returncode == 130 and "interrupted" in said[1], f"{child.returncode}: {said}")
    check(not os.listdir(place) and not out.exists(), f"left: {os.listdir(place)}")


def test_stranger(_, program, directory):
    """What runs on the hosts is not what it should be: it repeats what it is told."""
    fake = directory / "fake.sh"
    greeting = "printf '\\nmosa identify worker 1\\n'; exec cat"
    fake.write_text(f'case "$1" in *identify-worker*) {greeting} ;; *) exec sh -c "$1" ;; esac\n', encoding="ascii")
    place = directory / "strange"
    place.mkdir()
    words = ["--path", place, "--hosts", "a,b", "--exec", f"sh {fake}", "-o", directory / "never.json"]
    refused(program, "check that it runs the same version of Mosa", 3, *words)
    check(not os.listdir(place), f"left: {os.listdir(place)}")


def test_bad_input(_, program, directory):
    out = directory / "never.json"
    here = ["--path", directory, "-o", out]
    refused(program, "--budget 0: give 2 to 120 seconds", 2, *here, "--budget", 0)
    refused(program, "--budget 500: give 2 to 120 seconds", 2, *here, "--budget", 500)
    refused(program, "no cluster", 3, "--name", "no-such-cluster", "-o", out)
    refused(program, "cannot write /nonexistent/x.json", 3, "--path", directory, "-o", "/nonexistent/x.json")
    refused(program, f"cannot write {directory}: it is a directory", 3, "--path", directory, "-o", directory)
    refused(program, "no host answers", 5, "--path", directory / "missing", "-o", out)
    refused(program, "give either --path or --mount, not both", 2, *here, "--mount", directory)
    refused(program, "cannot create", 3, "--path", "/proc", "-o", out)
    check(not out.exists(), "nothing is written")


def test(arguments):
    program = pathlib.Path(arguments.bin).resolve() / "mosa"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, \
            cluster.Cluster(arguments.bin, 3, rate="400mbit", ram="512M") as store:
        directory = pathlib.Path(name)
        parts = (test_bad_input, test_stranger, test_path, test_interrupt, test_vanishing, test_interrupted_cluster, test_cluster)
        for part in parts:
            begin = time.monotonic()
            part(store, program, directory)
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    cluster.main(test, limit_s=180, description=__doc__)
