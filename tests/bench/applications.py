"""Real applications for benchmarks: seen once on one host, and then run over a cluster.

An application is a program of tools/workflows that writes a workflow and its inputs. What its tasks compute and do with
their files is seen on a cluster of one host, one task at a time, by `mosa trace`: it is the same on whatever store they
run. Needs root, as clusters of namespaces do.
"""

import json
import pathlib
import shutil
import sys

from cluster import Cluster
from harness import run
from processors import children_cpu_s

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "workflows"


def links_of(store):
    """{host: (bytes sent, bytes received)} so far, of hosts that run tasks: headers and what was lost included."""
    links = {}
    for host in store.hosts:
        sent = received = 0
        for line in store.exec(host, "cat", "/proc/net/dev").stdout.splitlines()[2:]:
            name, _, numbers = line.partition(":")
            if name.strip() != "lo":
                received += int(numbers.split()[0])
                sent += int(numbers.split()[8])
        links[host] = (sent, received)
    return links


def seconds_of(tasks):
    """From the first start to the last end that the runner noticed, of tasks of a record."""
    tasks = list(tasks)
    return max(task["end"] for task in tasks) - min(task["start"] for task in tasks)


class Application:
    """One of PROGRAMS: its workflow and inputs are in `out`/`name`, records of runs in `out`."""

    def __init__(self, mosa, out, program, *flags, name="", before=(), resume=False):
        """`flags` are the program's; `before` are words before each command that is timed. `resume`: what is in `out` was
        measured with these programs and settings, and stays."""
        self.mosa, self.out, self.name, self.before, self.resume = mosa, out, name or program, before, resume
        self.directory = out / self.name
        shutil.rmtree(self.directory, ignore_errors=True)
        run(sys.executable, PROGRAMS / f"{program}.py", "--mosa", mosa, "--write", self.directory, *flags)
        self.workflow = self.directory / f"{program}.json"

    def stage_in(self, store):
        """Empties the store and copies the inputs."""
        mount = pathlib.Path(store.mount("h1"))
        for path in mount.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.directory / "inputs", mount, dirs_exist_ok=True)

    def run(self, store, name, *flags):
        """After stage_in(). What was measured: seconds, of stages too, bytes of links, processor seconds of tasks,
        daemons, `mosa run` and `before`."""
        record = self.out / f"{self.name}.{name}.run.json"
        links, cpu_s = links_of(store), store.cpu_seconds() + children_cpu_s()
        run(*self.before, self.mosa, "run", self.workflow, "--cluster", store.name, "--dir", store.directory, "--slots", 1,
            "--retries", 0, "--record", record, *flags)
        cpu_s = store.cpu_seconds() + children_cpu_s() - cpu_s
        grown = {host: [after - before for after, before in zip(now, links[host])] for host, now in links_of(store).items()}
        tasks = json.loads(record.read_text(encoding="utf-8"))["tasks"]
        stages = dict.fromkeys(task["stage"] for task in tasks)
        return {"seconds": seconds_of(tasks), "links": grown, "cpu_s": cpu_s,
                "stages": {name: seconds_of(task for task in tasks if task["stage"] == name) for name in stages},
                "sent_bytes": sum(sent for sent, _ in grown.values())}

    def see(self, binaries, ram="1G"):
        """Runs it on one host. What `mosa predict` and `mosa advise` need to know of it, as their options."""
        traces, workload = self.out / f"{self.name}.traces", self.out / f"{self.name}.json"
        record = self.out / f"{self.name}.seen.run.json"
        seen = ["--workload", workload, "--operations", workload.with_suffix(".operations.json")]
        if self.resume and seen[-1].exists():
            self.tell_sizes(record)
            return seen
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir()
        with Cluster(binaries, 1, ram=ram) as store:
            where = ["--name", store.name, "--dir", store.directory]
            self.stage_in(store)  # Before: what is traced is what tasks do.
            # Cold: each task's own reads, whatever another has read before. With hints, so outputs that carry them are there
            # before their task, and whether it removes them is seen.
            run(self.mosa, "trace", "start", "--cold", "-o", traces, *where)
            self.run(store, "seen")
            run(self.mosa, "trace", "stop", *where)
        self.tell_sizes(record)
        run(self.mosa, "trace", "workload", *sorted(traces.iterdir()), "--record", record, "-o", workload)
        return seen

    def tell_sizes(self, record):
        """The workflow that runs says of its files what the one that is predicted says: how many copies a file gets depends
        on sizes."""
        workflow = json.loads(self.workflow.read_text(encoding="utf-8"))
        tasks = json.loads(record.read_text(encoding="utf-8"))["tasks"]
        workflow["files"] = {file["path"]: {"size": file["size_bytes"]} for task in tasks for file in task["outputs"]}
        self.workflow.write_text(json.dumps(workflow, indent=1), encoding="utf-8")


def run_in_turns(store, jobs, repeats):
    """{key: [what Application.run() says]}, of {key: (application, flags)}; runs of one turn are of the same minutes."""
    measured = {key: [] for key in jobs}
    for repeat in range(repeats):
        for key, (application, flags) in jobs.items():
            path = application.out / f"{application.name}.{key}.{repeat}.measured.json"
            if application.resume and path.exists():
                measured[key].append(json.loads(path.read_text(encoding="utf-8")))
                continue
            application.stage_in(store)
            done = application.run(store, f"{key}.{repeat}", *flags)
            path.write_text(json.dumps(done), encoding="utf-8")
            measured[key].append(done)
            print(f"{application.name} {key} {repeat}: {done['seconds']:.3f} s, {done['sent_bytes'] / 1e6:.1f} MB sent",
                  file=sys.stderr, flush=True)
    return measured
