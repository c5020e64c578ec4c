"""`mosa compare` predicts, writes that down, and runs: on a cluster where one host's link has become eight times slower than
the platform says, that host is named; the same runs before that are faster, and no link is said to be slow for all of them. `mosa
report` makes a page of such a run.

One task after the other, each with bytes on all nodes, so that nobody waits for anybody else's bytes by chance.
"""

import json
import pathlib
import tempfile

import cluster
from cluster import check

HOSTS = 4
RATE_MBIT = 200
SLOWER = 8
SLOW = "h2"
FILE_BYTES = 8 << 20
ANOMALY = 7
PLATFORM = pathlib.Path(__file__).resolve().parent.parent / "predict" / "platform_guess.json"


def workflow():
    tasks, files = [], {}
    for k in range(2 * HOSTS):
        path = f"part/{k}"
        files[path] = {"size": FILE_BYTES}
        tasks.append({"id": f"write_{k}", "command": f"head -c {FILE_BYTES} /dev/zero > {path}", "outputs": [path], "runtime": 0.02,
                      "after": [tasks[-1]["id"]] if tasks else []})
    return {"name": "compare", "tasks": tasks, "files": files}


def slow_down(store, host, slower=SLOWER):
    rate = ["rate", f"{RATE_MBIT // slower}mbit", "burst", "256kb", "latency", "50ms"]
    place = store.host(host)
    for command in (["tc"], ["tc", "-n", place["net_namespace"]]):
        device = place["link"] if len(command) == 1 else "eth0"
        done = cluster.subprocess.run([*command, "qdisc", "change", "dev", device, "root", "tbf", *rate], capture_output=True,
                                      text=True, check=False)
        check(done.returncode == 0, f"tc of {device}: {done.stderr}")


def compare(arguments, store, path, directory, repeats):
    command = [f"{arguments.bin}/mosa", "--json", "compare", "--platform", str(PLATFORM), "--config",
               f"hosts={HOSTS},manager=apart,chunk=256K", "--repeats", str(repeats), "-o", str(directory), "--", "run",
               str(path), "--cluster", store.name, "--dir", str(store.directory), "--system", "dss", "--slots", "1",
               "--workdir", directory.name]
    done = cluster.subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    check(done.returncode in (0, ANOMALY), f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    finding = answer["finding"]
    check((done.returncode == ANOMALY) == finding["is_slower"], f"{done.returncode}: {finding}")
    known = json.loads((directory / "prediction.json").read_text(encoding="utf-8"))
    before = (directory / "prediction.json").stat().st_mtime
    check(before <= (directory / "run-1.json").stat().st_mtime, "the prediction was there before the run")
    check([c["predicted_s"] for c in known["cells"] if c["level"] == "workflow"]
          == [c["predicted_s"] for c in answer["cells"] if c["level"] == "workflow"], "what is compared is what was written")
    whole = next(c for c in answer["cells"] if c["level"] == "workflow")
    print(f"  {directory.name}: {whole['measured_s']:.3f} s, predicted {whole['predicted_s']:.3f} s")
    print(f"    {finding['sentence']}")
    for cause in finding["causes"]:
        print(f"    {cause['sentence']}\n    Open first: {cause['open_first']}")
    return answer, whole["measured_s"]


def check_requests(answer):
    """What daemons count of bytes has the names and peers that are predicted of it, and is judged."""
    hosts = [f"h{k + 1}" for k in range(HOSTS)]
    pairs = {(host, peer) for host in hosts for peer in hosts if host != peer}
    for component, name, expected in (("mount", "node.write", pairs), ("storage", "write", pairs),
                                      ("storage", "write.object", {(host, "") for host in hosts})):
        found = {(r["host"], r["peer"]) for r in answer["requests"] if (r["component"], r["class"]) == (component, name) and r["p"] is not None}
        check(expected <= found, f"{component} {name}: judged are {sorted(found)}")
    manager = [r for r in answer["requests"] if (r["component"], r["class"]) == ("manager", "commit")]
    check(len(manager) == 1 and manager[0]["predicted"] and manager[0]["measured"] and manager[0]["verdict"] == "not judged", f"{manager}")


def report(arguments, directory):
    """The record of a real run has all that a page shows."""
    page = directory / "run-1.html"
    done = cluster.subprocess.run(
        [f"{arguments.bin}/mosa", "report", str(directory / "run-1.json"), "--platform", str(PLATFORM), "--config",
         "manager=apart,chunk=256K"], capture_output=True, text=True, timeout=100, check=False)
    check(done.returncode == 0 and done.stdout.endswith(f"{page}\n"), f"{done.returncode}: {done.stdout}{done.stderr}")
    text = page.read_text(encoding="utf-8").partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    data = json.loads(text)
    check({row["component"] for row in data["requests"]} == {"manager", "storage", "mount"}, f"{data['requests']}")
    hosts = [host["name"] for host in data["hosts"]]
    check(sorted(data["counters"]["mount"]) == sorted(data["counters"]["storage"]) == sorted(hosts), f"{data['counters']}")
    written = sum(counters[f"bytes_written_{path}"] for counters in data["counters"]["mount"].values()
                  for path in ("local", "remote", "inline", "passthrough"))
    check(written >= 2 * HOSTS * FILE_BYTES, f"{written} bytes by any path")
    check(sorted(data["placement"]["write"]) == sorted(hosts) and None not in data["tasks"]["predicted_took_us"], f"{data['placement']}")
    check([name for name, _ in data["versions"]][:2] == ["run: kernel", "run: mosa"], f"{data['versions']}")
    check(not any("clocks disagree" in note or "which way bytes went" in note for note in data["notes"]), f"{data['notes']}")


def check_machine(directory):
    """The record of a real run knows what tasks and daemons had of the one machine, and what is left for others."""
    record = json.loads((directory / "run-1.json").read_text(encoding="utf-8"))
    own = [attempt["processor_s"] for task in record["tasks"] for attempt in task["attempts"]]
    check(all(0 < seconds < 60 for seconds in own), f"{own}")
    machines = record["machines"]
    check(len(machines) == 1 and sorted(machines[0]["hosts"]) == [f"h{k + 1}" for k in range(HOSTS)], f"{machines}")
    machine = machines[0]
    check(abs(machine["tasks_s"] - sum(own)) < 1e-6 and machine["daemons_s"] > 0 and machine["processors"] >= 1, f"{machine}")
    most = machine["processors"] * machine["seconds"] + 0.1 * machine["processors"]
    check(0 <= machine["others_s"] <= most and machine["tasks_s"] + machine["daemons_s"] <= most + 0.1, f"{machine}")
    print(f"    others had {machine['others_s'] / machine['seconds'] / machine['processors']:.0%} of the processors: {machine}")


def refuse_other_hosts(arguments, store, path, directory):
    """A prediction of other hosts is refused after the first run, before the second."""
    done = cluster.subprocess.run(
        [f"{arguments.bin}/mosa", "compare", "--platform", str(PLATFORM), "--config", f"hosts={HOSTS - 1},manager=apart", "--repeats", "2",
         "-o", str(directory), "--", "run", str(path), "--cluster", store.name, "--dir", str(store.directory), "--slots", "1", "--workdir",
         directory.name], capture_output=True, text=True, timeout=100, check=False)
    check(done.returncode == 2 and f"say --config hosts={HOSTS}; compare the runs made so far with --run {directory}/run-*.json" in done.stderr,
          f"{done.returncode}: {done.stderr}")
    check((directory / "run-1.json").exists() and not (directory / "run-2.json").exists(), "one run was made")


def test(arguments):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        path = pathlib.Path(scratch) / "compare.json"
        path.write_text(json.dumps(workflow()), encoding="utf-8")
        flags = ["--chunk-size", str(256 << 10)]
        with cluster.Cluster(arguments.bin, HOSTS, rate=f"{RATE_MBIT}mbit", ram="256M", flags=flags) as store:
            clean, clean_s = compare(arguments, store, path, pathlib.Path(scratch) / "clean", 1)
            check(clean["cells"] and not clean["draws_failed"], f"{clean['notes']}")
            check_requests(clean)
            check_machine(pathlib.Path(scratch) / "clean")
            report(arguments, pathlib.Path(scratch) / "clean")
            refuse_other_hosts(arguments, store, path, pathlib.Path(scratch) / "other")
            slow_down(store, SLOW)
            slow, slow_s = compare(arguments, store, path, pathlib.Path(scratch) / "slow", 2)
            check(slow_s > clean_s, f"{slow_s} s with a slow link, {clean_s} s without")
            check(slow["finding"]["is_slower"], f"nothing is said of the slow link: {slow['finding']}")
            first = slow["finding"]["causes"][0]["suspects"]
            check(first == [{"part": "link", "host": SLOW}], f"named first: {slow['finding']['causes']}")
            check_requests(slow)


if __name__ == "__main__":
    cluster.main(test, limit_s=120, description=__doc__)
