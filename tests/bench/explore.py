#!/usr/bin/env python3
"""How long `mosa explore` takes for BLAST on 20 nodes (Provisioning, section 3.2): one is the manager's, 19 run tasks or store.

    tests/bench/explore.py --mosa build/release/bin/mosa
    tests/bench/explore.py --mosa build/release/bin/mosa --database 1700M --no-prune --repeats 0

makeblastdb writes the database, each of --parts tasks reads all of it and its own queries, and merge reads their results,
as in tools/workflows/blast.py. The space has 10,080 configurations: partition, chunk, stripe, copies, placement, hints,
seed. The platform is tests/predict/platform_guess.json, with links of 1 Gbit/s.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

PLATFORM = pathlib.Path(__file__).resolve().parent.parent / "predict" / "platform_guess.json"
SPACE = {
    "nodes": ["20"],
    "manager": ["apart"],
    "storage": ["0..17"],
    "chunk": ["64K..4M"],
    "stripe": ["0", "1"],
    "replicas": ["1"],
    "placement": ["stripe", "local"],
    "system": ["dss", "wass"],
    "seed": ["1..10"],
}


def blast(parts, database):
    names = [f"{number:03}" for number in range(parts)]
    tasks = [{"id": "makeblastdb", "command": "true", "inputs": ["proteins.fasta"], "outputs": ["database"], "runtime": 2}]
    for number, name in enumerate(names):
        tasks.append({"id": f"blastp-{name}", "command": "true", "inputs": [f"queries/{name}", "database"],
                      "outputs": [f"results/{name}"], "runtime": 20 + number % 3})
    results = [f"results/{name}" for name in names]
    tasks.append({"id": "merge", "command": "true", "inputs": results, "outputs": ["merged"], "runtime": 0.5})
    files = {"proteins.fasta": {"size": database}, "database": {"size": database}, "merged": {"size": f"{parts * 64}K"}}
    files.update({f"queries/{name}": {"size": "40K"} for name in names})
    files.update({result: {"size": "64K"} for result in results})
    return {"name": "blast", "tasks": tasks, "files": files}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mosa", required=True)
    parser.add_argument("--database", default="64M", help="its size (default 64M)")
    parser.add_argument("--parts", type=int, default=38, help="tasks that search it (default 38)")
    parser.add_argument("--repeats", type=int, default=20, help="draws, as of mosa explore (default 20)")
    parser.add_argument("--vary", action="append", default=[], help="a dimension in the place of the bench's")
    parser.add_argument("--no-prune", action="store_true")
    arguments = parser.parse_args()
    platform = json.loads(PLATFORM.read_text())
    platform["host"].update(out_bytes_per_second=119_000_000, in_bytes_per_second=119_000_000, store_bytes=8 << 30)
    with tempfile.TemporaryDirectory() as directory:
        paths = {}
        for name, value in (("platform", platform), ("workload", blast(arguments.parts, arguments.database)), ("space", SPACE)):
            paths[name] = pathlib.Path(directory) / f"{name}.json"
            paths[name].write_text(json.dumps(value))
        command = [arguments.mosa, "--json", "explore", "--repeats", str(arguments.repeats)]
        command += [f"--{name}={path}" for name, path in paths.items()]
        command += [f"--vary={dimension}" for dimension in arguments.vary] + ["--no-prune"] * arguments.no_prune
        answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    known = [p["turnaround_s"] for p in answer["configurations"] if "turnaround_s" in p]
    print(f"{answer['points']} configurations, {answer['impossible']} combinations that cannot be")
    print(f"{answer['simulated']} simulated, {answer['pruned']} pruned, {answer['collapsed']} collapsed, {answer['failed']} fail")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{answer['simulations']} simulations in {answer['seconds']:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of processors; "
          f"{answer['undecided']} undecided")
    print(f"{min(known):.1f} to {max(known):.1f} s; best: {answer['best']}; {len(answer['like_best'])} like it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
