"""A real Prometheus scrapes every daemon of a small cluster, and answers for them what `mosa residence` says: each count and
sum that it read lies between those of before and after.

Skipped where there is no `prometheus` (of Debian's package of that name).
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import cluster
from cluster import check, wait_until

PORTS = {"storage": 9464, "mount": 9465, "manager": 9466}
BYTES = 8 << 20


def serve_metrics(store, kind, host):
    """Has a daemon, started again, serve its metrics; where."""
    address = f"{store.host(host)['address']}:{PORTS[kind]}"
    command = store.kill(kind, host)
    store.start(kind, host, [*command, "--metrics", address])
    return address


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Prometheus:
    """One that scrapes these addresses each second, from `with` to its end."""

    def __init__(self, directory, targets):
        self.directory = pathlib.Path(directory)
        self.address = f"127.0.0.1:{free_port()}"
        jobs = [{"job_name": "mosa", "static_configs": [{"targets": targets}]}]
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
        (self.directory / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML.
        self.log = self.directory / "prometheus.log"

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.directory}/prometheus.yml", f"--web.listen-address={self.address}",
                 f"--storage.tsdb.path={self.directory}/data"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(30)

    def query(self, expression):
        """The samples of an instant query; none while it does not answer yet."""
        check(self.process.poll() is None, f"Prometheus ended: {self.log.read_text()[-2000:]}")
        where = f"http://{self.address}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        try:
            with urllib.request.urlopen(where, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []


def instances(store):
    """host -> what its scraped daemons are called, by component."""
    found = {("manager", "-"): f"{store.host('h0')['address']}:{PORTS['manager']}"}
    for host in store.hosts:
        for kind in ("storage", "mount"):
            found[kind, host] = f"{store.host(host)['address']}:{PORTS[kind]}"
    return found


def residence(store):
    """(instance, component, class, peer) -> (count, seconds)."""

    def answer():
        """Once the manager has forgotten the mounts that were killed."""
        daemons = json.loads(store.tell("residence", "--json"))["daemons"]
        return all(daemon["failure"] == "" for daemon in daemons) and daemons

    known = instances(store)
    rows = {}
    for daemon in wait_until(answer, 30, "every daemon answers"):
        for row in daemon["requests"]:
            rows[known[daemon["component"], daemon["host"]], daemon["component"], row["class"], row["peer"]] = \
                (row["count"], row["sum_ns"] / 1e9)
    return rows


def scraped(prometheus, part):
    rows = {}
    for sample in prometheus.query(f'{{__name__=~"mosa_.*_request_seconds_{part}"}}'):
        labels = sample["metric"]
        component = labels["__name__"].split("_")[1]
        rows[labels["instance"], component, labels["class"], labels.get("peer", "")] = float(sample["value"][1])
    return rows


def work(store):
    own = cluster.placed_directory(f"{store.mount('h1')}/data", "node:h1")
    pathlib.Path(own, "file").write_bytes(os.urandom(BYTES))
    check(len(pathlib.Path(store.mount("h2"), "data", "file").read_bytes()) == BYTES, "h2 reads something else")


def check_values(store, prometheus):
    before = residence(store)
    since = time.time()

    def all_scraped():
        up = prometheus.query("up == 1")
        when = prometheus.query('timestamp({__name__=~"mosa_.*_start_time_seconds"})')
        return len(up) == len(when) == len(instances(store)) and all(float(one["value"][1]) > since for one in when)

    wait_until(all_scraped, 30, "every daemon is scraped")
    counts, sums = scraped(prometheus, "count"), scraped(prometheus, "sum")
    after = residence(store)
    check(set(before) <= set(counts) and counts.keys() == sums.keys(), f"missing: {set(before) - set(counts)}")
    for row, (count, seconds) in before.items():
        check(count <= counts[row] <= after[row][0], f"{row}: {counts[row]} is not from {count} to {after[row][0]}")
        check(seconds - 1e-6 <= sums[row] <= after[row][1] + 1e-6, f"{row}: {sums[row]} s, {seconds} to {after[row][1]}")
    served = [row for row in counts if row[1:3] == ("storage", "read") and row[0] == instances(store)["storage", "h1"]]
    check(served, f"h1 served no read: {counts}")
    half = prometheus.query("histogram_quantile(0.5, sum by (le) (mosa_storage_request_seconds_bucket{class='read'}))")
    check(len(half) == 1 and 0 < float(half[0]["value"][1]) < 60, f"half of the reads: {half}")
    moved = prometheus.query("sum(mosa_storage_bytes_read_remote_total)")
    check(float(moved[0]["value"][1]) >= BYTES, f"{moved}")
    print(f"  {len(before)} rows of {len(instances(store))} daemons are as 'mosa residence' says")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store, tempfile.TemporaryDirectory() as directory:
        targets = [serve_metrics(store, "manager", "h0")]
        targets += [serve_metrics(store, kind, host) for kind in ("storage", "mount") for host in store.hosts]
        check(sorted(targets) == sorted(instances(store).values()), f"{targets}")
        work(store)
        with Prometheus(directory, targets) as prometheus:
            check_values(store, prometheus)


if __name__ == "__main__":
    if shutil.which("prometheus") is None:
        print("skipped: there is no 'prometheus' here: apt-get install --no-install-recommends prometheus")
        sys.exit(77)
    cluster.main(test, limit_s=120, description=__doc__)
