"""`mosa watch` and `mosa bench gate` on a real cluster where, half way, one host's link becomes eight times slower than the
platform says: the watch that goes on meanwhile says so of requests from or to that host, and the gate, which let the store pass,
fails. `mosa top` has what is predicted beside it. Bad words, another deployment and a daemon that is gone are said.

Nothing is said of times but that a link an eighth as fast is noticed; what passes has a margin that nothing exceeds.
"""

import json
import os
import pathlib
import signal
import subprocess
import tempfile

import cluster
from cluster import check
from compare_test import ANOMALY, PLATFORM, RATE_MBIT, slow_down

HOSTS = 3
SLOW = "h2"
SLOWER = 8
FILE_BYTES = 2 << 20
CONFIGURATION = f"hosts={HOSTS},manager=apart,chunk=256K"


def workflow():
    """One file after the other, each striped over all hosts."""
    tasks, files = [], {}
    for k in range(2 * HOSTS):
        path = f"part-{k}"
        files[path] = {"size": FILE_BYTES}
        tasks.append({"id": f"write_{k}", "command": f"head -c {FILE_BYTES} /dev/zero > {path}", "outputs": [path], "runtime": 0.02,
                      "after": [tasks[-1]["id"]] if tasks else []})
    return {"name": "watched", "tasks": tasks, "files": files}


class Watched:
    def __init__(self, arguments, store, scratch):
        self.store = store
        self.scratch = pathlib.Path(scratch)
        self.mosa = f"{arguments.bin}/mosa"
        self.of_cluster = ["--name", store.name, "--dir", str(store.directory)]
        self.path = self.scratch / "watched.json"
        self.path.write_text(json.dumps(workflow()), encoding="utf-8")
        self.runs = 0

    def run(self, *words):
        return subprocess.run([self.mosa, *map(str, words)], capture_output=True, text=True, timeout=100, check=False)

    def refused(self, *words, code, says):
        done = self.run(*words)
        check(done.returncode == code and says in done.stderr, f"{words}: {done.returncode}, not {code}: {done.stderr!r}")

    def watch_words(self, configuration=CONFIGURATION):
        return ["watch", *self.of_cluster, "--platform", PLATFORM, "--workload", self.path, "--config", configuration]

    def work(self):
        self.runs += 1
        done = self.run("run", self.path, "--cluster", self.store.name, "--dir", self.store.directory, "--system", "dss",
                        "--slots", "1", "--workdir", f"run-{self.runs}", "--record", self.scratch / f"run-{self.runs}.json")
        check(done.returncode == 0, f"the run fails: {done.stderr}")

    def gate(self, name, *words):
        done = self.run("--json", "bench", "gate", *self.of_cluster, "--platform", PLATFORM, "--config", CONFIGURATION,
                        "--patterns", "broadcast", "--repeats", 1, "--file-size", FILE_BYTES, "-o", self.scratch / name, *words)
        check(done.returncode in (0, ANOMALY), f"gate: {done.returncode}: {done.stderr}")
        answer = json.loads(done.stdout)
        check(answer["passes"] == (done.returncode == 0), f"{done.returncode}: {answer}")
        for one in answer["patterns"]:
            print(f"  gate: {one['sentence']}")
        return answer


def refusals(watched):
    words = watched.watch_words()
    watched.refused(*words[:5], *words[7:], code=2, says="--platform")
    watched.refused(*words[:7], *words[9:], code=2, says="add --workload")
    watched.refused(*watched.watch_words("hosts=5,manager=apart"), code=2, says=f"say --config hosts={HOSTS}")
    watched.refused(*words, "--interval", "1ns", code=2, says="between 100ms and 60m")
    watched.refused("top", *watched.of_cluster, "--workload", watched.path, code=2, says="needs a --platform")
    watched.refused("top", *words[1:7], code=2, says="add --workload")
    gate = ["bench", "gate", *watched.of_cluster, "--platform", PLATFORM, "-o", watched.scratch / "refused"]
    watched.refused(*gate, "--patterns", "scatter", code=2, says="pipeline, reduce and broadcast")
    watched.refused(*gate[:-3], "/nonexistent", *gate[-2:], code=3, says="/nonexistent")


def top_beside_predicted(watched):
    """What is predicted of the requests of a run stands beside what they take."""
    command = [watched.mosa, "top", "--once", "--json", "--interval", "5s", *map(str, watched.watch_words()[1:])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
        while top.poll() is None:
            watched.work()
        view = json.loads(top.stdout.read())
    predicted = {(one["component"], one["class"]): one["predicted_mean_us"] for one in view["classes"]}
    check((predicted.get(("mount", "node.write")) or 0) > 0, f"{predicted}")
    check(predicted.get(("mount", "node.connect")) is None, f"nothing is predicted of connections: {predicted}")


def watch_slowing(watched):
    """Work goes on until the watch has something to say of the slow host."""
    command = [watched.mosa, "--json", *map(str, watched.watch_words()), "--interval", "4s"]
    output = watched.scratch / "watch.out"

    def lines():
        check(process.poll() is None, f"the watch has ended with {process.returncode}")
        return [json.loads(text) for text in output.read_text().splitlines(keepends=True) if text.endswith("\n")]

    def of_the_slow_host():
        watched.work()
        off = [one for line in lines() for one in line["requests"][:line["anomalies"]]]
        return [one for one in off if SLOW in (one["host"], one["peer"])]

    with open(output, "wb") as file:
        process = subprocess.Popen(command, stdout=file)
    try:
        check(cluster.wait_until(lines, 60, "the first interval")[0]["notes"] == [], "every daemon answers")
        slow_down(watched.store, SLOW, SLOWER)
        found = cluster.wait_until(of_the_slow_host, 60, "something is said of the slow host's requests")
        print(f"  watch: {found[0]['sentence']}")
        check(found[0]["residual_share_interval"][0] > 0 and found[0]["open_first"], f"{found[0]}")
        process.send_signal(signal.SIGINT)
        check(process.wait(30) == ANOMALY, f"the watch ended with {process.returncode}")
    finally:
        process.kill()
        process.wait(30)


def watch_without_a_node(watched):
    watched.store.kill("storage", "h3")
    done = watched.run(*watched.watch_words(), "--once", "--interval", "100ms")
    check(done.returncode in (0, ANOMALY) and "the storage of h3 is left out: " in done.stdout, f"{done.returncode}: {done.stdout}")


def test(arguments):
    flags = ["--chunk-size", str(256 << 10)]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch, \
            cluster.Cluster(arguments.bin, HOSTS, rate=f"{RATE_MBIT}mbit", ram="256M", flags=flags) as store:
        watched = Watched(arguments, store, scratch)
        refusals(watched)
        check(watched.gate("before", "--margin", 100)["passes"], "a hundred times slower than predicted")
        watched.refused("bench", "gate", *watched.of_cluster, "--platform", PLATFORM, "--config", CONFIGURATION, "--patterns",
                        "broadcast", "--repeats", 1, "-o", watched.scratch / "before", code=3, says="earlier comparison")
        top_beside_predicted(watched)
        watch_slowing(watched)
        slow = watched.gate("after")
        check(not slow["passes"] and "predicted" in slow["patterns"][0]["sentence"], f"{slow}")
        watch_without_a_node(watched)


if __name__ == "__main__":
    os.environ.pop("MOSA_MANAGER", None)
    cluster.main(test, limit_s=120, description=__doc__)
