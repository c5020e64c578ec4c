"""What `mosa predict` says of a run is what `mosa run` then does on a real cluster: each task on the same host, each file
on as many nodes with as many bytes each, what is to lie on its writer's node there, a reader's files on one node, and the
same bytes over the links.

Which node a striped file begins at, which nodes hold further copies and where a group's files gather is drawn for each
file or depends on who comes first: these are compared as distributions (tests/fidelity compares them node by node, with
the same draws).
"""

import json
import pathlib
import tempfile

import cluster
from cluster import check

HOSTS = 4
CHUNK = 256 << 10
# Whole rounds of chunks, so that every node has as much of a striped file wherever it begins.
FIRST, SECOND, TOTAL, SMALL = 64 * CHUNK, 32 * CHUNK, 32 * CHUNK, 300
LINK_SHARE = 0.02
REFETCHED = 2 << 20  # A mount may fetch the begin of a file from other nodes twice, by several threads at once.
FILES_READ = 3 * HOSTS
COPIES_SHARE = 0.4  # Pieces that change while nodes copy them are sent again: how many is a matter of chance.
PLATFORM = pathlib.Path(__file__).resolve().parent.parent / "predict" / "platform_guess.json"


def workflow(copied):
    """Pipelines whose ends one task gathers; all read what it writes. One task after the other, so that nobody is first
    by chance."""
    tasks, files = [], {}

    def add(name, inputs, outputs, hints=None):
        for path, size in outputs.items():
            files[path] = {"size": size, **(hints or {})}
        writes = [f"head -c {size} /dev/urandom > {path}" for path, size in outputs.items()]
        reads = [f"dd if={path} of=/dev/null bs=1M status=none" for path in inputs]
        tasks.append({"id": name, "command": "; ".join(reads + writes), "inputs": list(inputs), "outputs": list(outputs),
                      "after": [tasks[-1]["id"]] if tasks else []})

    for k in range(HOSTS):
        add(f"one-{k}", [], {f"one/{k}": FIRST})
    for k in range(HOSTS):
        add(f"two-{k}", [f"one/{k}"], {f"two/{k}": SECOND})
    hints = None if copied else {"placement": "stripe"}  # Without them it is broadcast.
    add("join", [f"two/{k}" for k in range(HOSTS)], {"all/joined": TOTAL}, hints)
    for k in range(HOSTS):
        add(f"read-{k}", ["all/joined"], {f"out/{k}": SMALL})
    add("pieces", [], {"data/pieces": HOSTS * CHUNK}, {"pattern": f"scatter:{CHUNK}"})
    return {"name": "prediction", "tasks": tasks, "files": files}


def predict(binaries, path, system):
    config = f"hosts={HOSTS},manager=apart,slots=1,chunk={CHUNK},system={system}"
    command = [str(binaries / "mosa"), "--json", "predict", "--platform", str(PLATFORM), "--workload", str(path),
               "--config", config, "--repeats", "0", "--layouts"]
    done = cluster.subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 0, f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def link_bytes(store):
    def counter(host, name):
        return int(pathlib.Path(f"/sys/class/net/{store.host(host)['link']}/statistics/{name}").read_text())

    # What a host sends, the other end of its link receives.
    return {host: {"sent": counter(host, "rx_bytes"), "received": counter(host, "tx_bytes")} for host in store.hosts}


def compare(real, predicted, moved, system, copied):
    sizes = workflow(copied)["files"]
    hosts = {task["id"]: task["host"] for task in predicted["tasks"]}
    gathered = system == "wass"  # Then a group's files lie on one node, and their reader runs there.
    for task in real["tasks"]:
        here = task["host"] == hosts[task["id"]]
        check(here or gathered and task["id"] not in [f"{s}-{k}" for s in ("one", "two") for k in range(HOSTS)],
              f"{system}: {task['id']} ran on {task['host']}, predicted {hosts[task['id']]}")
    said = {file["path"]: file for file in predicted["files"]}
    groups = []
    for task in real["tasks"]:
        for output in task["outputs"]:
            path, size = output["path"], output["size_bytes"]
            check(size == sizes[path]["size"], f"{path} has {size} B")
            if said[path]["inline"] or size == SMALL:
                check(said[path]["inline"], f"{path} of {SMALL} B is not predicted to be inline")
                continue
            check(said[path]["segments"][-1]["begin"] == 0, f"{path} is predicted to spill: {said[path]}")
            expected = said[path]["nodes"]
            check(sorted(expected.values()) == sorted(output["nodes"].values()),
                  f"{system}: {path} lies as {output['nodes']}, predicted {expected}")
            alone = len(expected) == 1 and not path.startswith("two/")
            check(not alone or gathered, f"{system}: {path} is predicted to lie on one node: {expected}")
            check(not alone or (list(output["nodes"]) == [task["host"]] and list(expected) == [hosts[task["id"]]]),
                  f"{system}: {path} lies on {output['nodes']}, predicted {expected}, and {task['host']} wrote it")
            if gathered and path.startswith("two/"):
                groups.append((list(output["nodes"]), list(expected)))
    if gathered:
        check(len({node for nodes, _ in groups for node in nodes}) == 1, f"a reader's files lie apart: {groups}")
        check(len({node for _, nodes in groups for node in nodes}) == 1, f"predicted apart: {groups}")
    for way in ("sent", "received"):
        have = sorted(links[way] for links in moved.values())
        expected = sorted(host[f"bytes_{way}"] for host in predicted["hosts"][:HOSTS])
        print(f"  {system} {way}: {have} B, predicted {expected} B")
        if copied and way == "sent":  # Who passes a copy's pieces on depends on who has them first.
            check(sum(have) >= (1 - LINK_SHARE) * sum(expected),
                  f"{system}: links have {way} {sum(have)} B, predicted {sum(expected)} B")
        else:
            for a, b in zip(have, expected):
                check(a >= (1 - LINK_SHARE) * b, f"{system}: a link has {way} {a} B, predicted {b} B")
        most = sum(expected) * (1 + (COPIES_SHARE if copied else LINK_SHARE)) + FILES_READ * REFETCHED
        check(sum(have) <= most, f"{system}: links have {way} {sum(have)} B, predicted {sum(expected)} B")


def test(arguments):
    binaries = pathlib.Path(arguments.bin).resolve()
    flags = ["--chunk-size", str(CHUNK)]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        path = pathlib.Path(scratch) / "prediction.json"
        with cluster.Cluster(binaries, HOSTS, rate="1gbit", flags=flags) as store:
            for system, copied in (("dss", False), ("wass", False), ("wass", True)):
                path.write_text(json.dumps(workflow(copied)), encoding="utf-8")
                predicted = predict(binaries, path, system)
                check(not predicted["failure"], f"{predicted['failure']}")
                name = f"{system}{'-copied' if copied else ''}"
                record = pathlib.Path(scratch) / f"{name}.json"
                before = link_bytes(store)
                command = [str(binaries / "mosa"), "run", str(path), "--cluster", store.name, "--dir", str(store.directory),
                           "--system", system, "--slots", "1", "--record", str(record), "--workdir", name]
                done = cluster.subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
                check(done.returncode == 0, f"{' '.join(command)}: {done.stderr}")
                after = link_bytes(store)
                moved = {h: {way: after[h][way] - before[h][way] for way in after[h]} for h in after}
                compare(json.loads(record.read_text(encoding="utf-8")), predicted, moved, system, copied)


if __name__ == "__main__":
    cluster.main(test, limit_s=120, description=__doc__)
