"""Runs one application by `mosa run`: on a local disk, and over a cluster with all files on one more
host (a central server), under DSS, under WASS, and by a plan that is made from the run on the local
disk.
 Every output is compared, byte for byte, with the local disk's. Then it is shown what each stage
took, which bytes went over the network, where every output lies, and with a platform file what was
predicted. The applications beside this file say what to run; see Application.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

BLOCK_BYTES = 1 << 20


class Failed(Exception):
    """Something did not work or was not equal; the text says what."""


class Missing(Exception):
    """Something must be installed first; the text says what."""


class Application:
    """One workflow for `mosa run`. Paths are relative to the directory in which its tasks run."""

    name = ""
    ram = "1G"  # What each node needs to hold for the application's usual size.

    def add_arguments(self, parser):
        """Adds what the user may choose."""

    def check(self, arguments):
        """Raises Missing or Failed if it cannot run here like that."""

    def prepare(self, arguments, inputs):
        """Writes what no task makes below the directory `inputs`; returns the workflow in mosa
        run's own form."""
        raise NotImplementedError

    def may_be_empty(self, path):
        """Whether that output is right without a byte in it."""
        return False

    def is_dated(self, path):
        """Whether the bytes of that output tell when it was made. Then compare_data() has to
        compare what they mean."""
        return False

    def compare_data(self, mounted, local):
        """Compares what is_dated() names, in two directories; raises Failed if it differs."""


def run(command, **options):
    """Runs a program to its end and returns its standard output."""
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, check=False, **options)
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip()[-2000:] or "it said nothing"
        raise Failed(f"'{' '.join(command)}' ended with exit code {done.returncode}: {last}")
    return done.stdout


def need_programs(package, *programs):
    for program in programs:
        if not shutil.which(program):
            raise Missing(f"{program} is not installed: install the package {package}")


def human(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def print_table(title, rows):
    """First column to the left, the others to the right; the first row is the heading."""
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [
            cell.rjust(width) for cell, width in zip(row[1:], widths[1:])
        ]
        print("  " + "  ".join(cells).rstrip())
    sys.stdout.flush()


# ---- running


# What runs are compared. In the system "server" all files lie on one more host, on which no task runs.
SYSTEMS = ("server", "dss", "wass", "plan")


class Cluster:
    """A cluster of this machine, from `with` to its end."""

    def __init__(self, arguments, system):
        self.mosa = arguments.mosa
        self.name = f"comparison-{os.getpid()}"
        self.hosts = arguments.hosts
        self.server = f"h{self.hosts + 1}" if system == "server" else None
        self.flags = ["--hosts", self.hosts + (1 if self.server else 0)]
        # A server has room for all.
        self.flags += ["--ram", "4G" if self.server else arguments.ram]
        if arguments.rate:
            self.flags += ["--rate", arguments.rate]

    def __enter__(self):
        try:
            facts = json.loads(
                run([self.mosa, "cluster", "up", "--json", "--name", self.name, *self.flags])
            )
        except BaseException:
            self.__exit__()
            raise
        self.namespaces = facts["namespaces"]
        self.all_mounts = {host["name"]: pathlib.Path(host["mount"]) for host in facts["hosts"]}
        # Where tasks run.
        self.mounts = {n: mount for n, mount in self.all_mounts.items() if n != self.server}
        return self

    def host_flags(self):
        """What tells `mosa run` of the cluster."""
        if not self.server:
            return ["--cluster", self.name]
        anywhere = str(self.mounts["h1"]).replace("/h1/", "/{host}/")
        return ["--mount", anywhere, "--hosts", ",".join(self.mounts)]

    def __exit__(self, *_):
        subprocess.run(
            [str(self.mosa), "cluster", "down", "--discard", "--name", self.name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )

    def sent_bytes(self):
        """What all hosts and the manager's have sent so far: everything, headers and lost packets
        included."""
        total = 0
        for host in ["h0", *self.all_mounts]:
            text = run(
                [
                    self.mosa,
                    "cluster",
                    "exec",
                    "--name",
                    self.name,
                    host,
                    "--",
                    "cat",
                    "/proc/net/dev",
                ]
            ).decode()
            for line in text.splitlines()[2:]:
                name, _, numbers = line.partition(":")
                total += 0 if name.strip() == "lo" else int(numbers.split()[8])
        return total

    def counters(self):
        """What the mounts counted together, and with namespaces what went over the network."""
        total = collections.Counter()
        for mount in self.mounts.values():
            facts = json.loads(os.getxattr(mount, "user.mosa.mount"))
            total.update(
                {name: value for name, value in facts.items() if name.startswith("bytes_")}
            )
        if self.namespaces:
            total["sent"] = self.sent_bytes()
        return total


class Job:
    """An application made ready in a directory: its workflow, its inputs."""

    def __init__(self, application, arguments, directory):
        self.mosa = arguments.mosa
        self.name = application.name
        self.directory = pathlib.Path(directory)
        self.inputs = self.directory / "inputs"
        self.inputs.mkdir(parents=True)
        workflow = application.prepare(arguments, self.inputs)
        self.workflow = self.directory / f"{self.name}.json"
        self.workflow.write_text(
            json.dumps({"name": self.name, **workflow}, indent=1) + "\n", encoding="utf-8"
        )

    def run(self, name, *flags):
        """Runs the tasks where the inputs were copied to; returns the record of the run."""
        record = self.directory / f"{name}.run.json"
        run(
            [self.mosa, "run", self.workflow, "--record", record, "--retries", "0", *flags],
            cwd=self.directory,
        )
        return json.loads(record.read_text(encoding="utf-8"))


def outputs_of(record):
    return [file for task in record["tasks"] for file in task["outputs"]]


# ---- comparing


def first_difference(ours, theirs):
    """Where two files differ first, or None."""
    with open(ours, "rb") as one, open(theirs, "rb") as other:
        at = 0
        while True:
            a, b = one.read(BLOCK_BYTES), other.read(BLOCK_BYTES)
            if a != b:
                return at + next(
                    (i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b))
                )
            if not a:
                return None
            at += len(a)


def compare_outputs(application, record, cluster, workdir, local):
    """Every output, each read through the mount of the host that holds most of it. Returns how many
    bytes were equal."""
    hosts = sorted(cluster.mounts)

    def compare(number, file):
        path = file["path"]
        size = (local / path).stat().st_size
        if size == 0 and not application.may_be_empty(path):
            raise Failed(f"{path} is empty on the local disk, so equality would prove nothing")
        if application.is_dated(path):
            return 0
        held = [name for name, count in file["nodes"].items() if count and name in cluster.mounts]
        host = held[0] if len(held) == 1 else hosts[number % len(hosts)]
        at = first_difference(cluster.mounts[host] / workdir / path, local / path)
        if at is not None:
            raise Failed(f"{path}, read on {host}, differs from the local disk's at byte {at}")
        return size

    with concurrent.futures.ThreadPoolExecutor(len(hosts)) as pool:
        total = sum(pool.map(compare, *zip(*enumerate(outputs_of(record)))))
    application.compare_data(cluster.mounts[hosts[-1]] / workdir, local)
    return total


# ---- showing


def stages_of(record):
    """{stage: (tasks, seconds from the first start to the last end, bytes of inputs that lay
    elsewhere)}, in order."""
    stages = collections.defaultdict(list)
    for task in record["tasks"]:
        stages[task["stage"]].append(task)
    return {
        name: (
            len(tasks),
            max(t["end"] for t in tasks) - min(t["start"] for t in tasks),
            sum(t["input_bytes_remote"] for t in tasks),
        )
        for name, tasks in stages.items()
    }


def show_stages(local, records):
    columns = {
        "local disk": stages_of(local),
        **{name: stages_of(record) for name, record in records.items()},
    }
    rows = [["stage", "tasks", *columns, *[f"elsewhere, {name}" for name in records]]]
    for stage, (tasks, _, _) in columns["local disk"].items():
        rows.append(
            [
                stage,
                str(tasks),
                *[f"{stages[stage][1]:.2f}" for stages in columns.values()],
                *[human(columns[name][stage][2]) for name in records],
            ]
        )
    everything = {"local disk": local, **records}
    rows.append(
        [
            "all",
            str(len(local["tasks"])),
            *[f"{r['turnaround_seconds']:.2f}" for r in everything.values()],
            *[human(sum(s[2] for s in columns[name].values())) for name in records],
        ]
    )
    print_table(
        "Seconds from a stage's first start to its last end (stages overlap), and bytes of its tasks' inputs that lay"
        " on other hosts",
        rows,
    )


CARRIED = {
    "read: own node": "bytes_read_local",
    "other nodes": "bytes_read_remote",
    "inline": "bytes_read_inline",
    "written: passthrough": "bytes_written_passthrough",
    "own node ": "bytes_written_local",
    "other nodes ": "bytes_written_remote",
    "inline ": "bytes_written_inline",
}


def show_carried(carried, namespaces):
    heading = ["system", *(["over the network"] if namespaces else []), *CARRIED]
    rows = [heading]
    for system, counters in carried.items():
        rows.append(
            [
                system,
                *([human(counters["sent"])] if namespaces else []),
                *[human(counters[name]) for name in CARRIED.values()],
            ]
        )
    print_table(
        "What the run moved, as hosts' links and mounts counted (what the kernel reads by itself on the own node is"
        " not counted)",
        rows,
    )


def kind_of(path):
    path = pathlib.PurePath(path)
    return str(path) if path.parent == pathlib.PurePath(".") else f"{path.parent}/*{path.suffix}"


def show_places(system, record, hosts):
    kinds = collections.defaultdict(list)
    for file in outputs_of(record):
        kinds[kind_of(file["path"])].append(file)

    def row(title, files):
        held = sum((collections.Counter(file["nodes"]) for file in files), collections.Counter())
        on_one = sum(sum(count > 0 for count in file["nodes"].values()) == 1 for file in files)
        return [
            title,
            str(len(files)),
            *[human(held[host]) if held[host] else "-" for host in hosts],
            str(on_one),
            human(sum(file["size_bytes"] for file in files)),
        ]

    rows = [["outputs", "files", *hosts, "on one node", "together"]]
    rows += [row(kind, files) for kind, files in kinds.items()]
    print_table(f"Where the outputs lie, {system}", rows + [row("all", outputs_of(record))])


# ---- predicting


class Forecast:
    """What is predicted of each system from the run on the local disk, before the cluster's runs."""

    def __init__(self, arguments, job, cluster):
        self.mosa = arguments.mosa
        self.platform = arguments.platform or job.directory / "platform.json"
        if not arguments.platform:
            print(f"Measuring the platform, {arguments.identify} s at most", flush=True)
            flags = ["--cluster", cluster.name, "--budget", arguments.identify]
            run([self.mosa, "identify", *flags, "-o", self.platform])
        hosts = len(cluster.mounts)
        # As mosa run chooses, on one machine.
        slots = arguments.slots or max(1, len(os.sched_getaffinity(0)) // hosts)
        self.configuration = f"hosts={hosts},slots={slots}"
        if cluster.namespaces:
            self.configuration += ",manager=apart"
        self.of_runs = self.configuration
        self.record = job.directory / "local.run.json"
        self.plan = job.directory / "plan.json"
        self.seconds, self.gain = {}, None

    def make(self, systems):
        if "plan" in systems or "wass" in systems:
            plan = self.ask("plan", "--record", self.record, "-o", self.plan)
            predicted = plan["predicted"]
            self.seconds["wass"] = predicted["unplanned_seconds"]
            self.seconds["plan"] = predicted["seconds"]
            self.gain = predicted["gain_s"] / predicted["unplanned_seconds"]
        if "dss" in systems:
            sized = self.record.with_name("sized.json")
            run([self.mosa, "trace", "workload", "--record", self.record, "-o", sized])
            self.configuration += ",system=dss"
            self.seconds["dss"] = self.ask("predict", "--workload", sized)["turnaround_mean_s"]

    def ask(self, command, *words):
        flags = ["--platform", self.platform, "--config", self.configuration]
        return json.loads(run([self.mosa, command, "--json", *flags, *words]))


# ---- the command


def run_once(application, arguments, job, cluster, system):
    """One run in a directory of its own. Returns its record and what it moved."""
    first = next(iter(cluster.mounts.values()))
    if cluster.server:
        (first / system).mkdir()
        os.setxattr(first / system, "user.mosa.placement", f"node:{cluster.server}".encode())
    shutil.copytree(job.inputs, first / system, dirs_exist_ok=True)
    before = cluster.counters()
    flags = ["--system", "dss" if system == "server" else system]
    if system == "plan":
        flags = ["--plan", job.directory / "plan.json"]
    record = job.run(
        system,
        *(*cluster.host_flags(), "--workdir", system),
        *(["--slots", str(arguments.slots)] if arguments.slots else []),
        *flags,
    )
    after = cluster.counters()
    carried = collections.Counter({key: after[key] - before[key] for key in after})
    size = compare_outputs(application, record, cluster, system, job.directory / "local")
    ran_on = collections.Counter(task["host"] for task in record["tasks"])
    print(
        f"  {system}: ran in {record['turnaround_seconds']:.2f} s; "
        f"{len(outputs_of(record))} outputs, {human(size)}, equal the local disk's; "
        f"tasks on {', '.join(f'{host} {ran_on[host]}' for host in cluster.mounts)}",
        flush=True,
    )
    shutil.rmtree(first / system)
    return record, carried


def show_times(runs, local, forecast, namespaces):
    heading = ["system", "runs", "seconds", "least", "most"]
    heading += ["over the network"] if namespaces else []
    heading += ["predicted", "off by"] if forecast else []
    on_disk = f"{local['turnaround_seconds']:.2f}"
    rows = [heading, ["local disk", "1", on_disk, on_disk, on_disk]]
    rows[1] += ["-"] * (len(heading) - len(rows[1]))
    medians = {}
    for system, each in runs.items():
        seconds = [record["turnaround_seconds"] for record, _ in each]
        medians[system] = statistics.median(seconds)
        row = [system, str(len(each)), f"{medians[system]:.2f}"]
        row += [f"{min(seconds):.2f}", f"{max(seconds):.2f}"]
        if namespaces:
            row.append(human(statistics.median(carried["sent"] for _, carried in each)))
        if forecast and system in forecast.seconds:
            predicted = forecast.seconds[system]
            row += [f"{predicted:.2f}", f"{100 * (predicted / medians[system] - 1):+.0f} %"]
        elif forecast:
            row += ["-", "-"]
        rows.append(row)
    print_table("Medians of all runs, taken in turns", rows)
    if forecast and {"wass", "plan"} <= set(medians):
        gain = 1 - medians["plan"] / medians["wass"]
        print(f"  The plan gains {100 * gain:.1f} %; {100 * forecast.gain:.1f} % were predicted.")


def write_report(arguments, job, forecast):
    system = [system for system in arguments.systems if system != "server"][-1]
    record = job.directory / f"{system}.run.json"
    flags = ["--platform", forecast.platform, "--config", forecast.of_runs] if forecast else []
    run([arguments.mosa, "report", record, *flags, "-o", arguments.report])
    what = "with its prediction" if forecast else "without a prediction"
    print(f"\nThe run '{system}' as a page, {what}: open {arguments.report} in a browser.")


def run_on_cluster(application, arguments, job, local):
    runs = {system: [] for system in arguments.systems}
    forecast, hosts = None, {}
    for number in range(arguments.repeats):
        # In turns, the other way round each time: what changes on the machine meets all alike.
        for system in arguments.systems[:: -1 if number % 2 else 1]:
            with Cluster(arguments, system) as cluster:
                if not any(runs.values()):
                    where = "namespaces" if cluster.namespaces else "plain processes (not root)"
                    rate = f", {arguments.rate} each way" if arguments.rate else ""
                    tasks = len(local["tasks"])
                    print(
                        f"{application.name}: {tasks} tasks on {len(cluster.mounts)} hosts, {where}{rate}",
                        flush=True,
                    )
                if forecast is None and arguments.predicts and not cluster.server:
                    forecast = Forecast(arguments, job, cluster)
                    forecast.make(arguments.systems)
                runs[system].append(run_once(application, arguments, job, cluster, system))
                namespaces, hosts[system.upper()] = cluster.namespaces, list(cluster.all_mounts)
    records = {system.upper(): each[-1][0] for system, each in runs.items()}
    show_stages(local, records)
    show_carried({system.upper(): each[-1][1] for system, each in runs.items()}, namespaces)
    for name, record in records.items():
        show_places(name, record, hosts[name])
    show_times(runs, local, forecast, namespaces)
    if arguments.report:
        write_report(arguments, job, forecast)


def compare(application, arguments):
    application.check(arguments)
    if arguments.report and arguments.systems == ["server"]:
        raise Failed("--report is for a run on the cluster: name another system too")
    if arguments.repeats < 1:
        raise Failed(f"--repeats {arguments.repeats}: at least 1")
    if "plan" in arguments.systems and not arguments.predicts:
        raise Failed("a plan needs --platform FILE, made with 'mosa identify', or --identify SECONDS")
    if arguments.write:
        job = Job(application, arguments, arguments.write)
        print(
            f"Copy {job.inputs}/. to a directory of the mount, and there:  mosa run {job.workflow} --workdir THAT_DIRECTORY"
        )
        return
    with tempfile.TemporaryDirectory(prefix=f"mosa-{application.name}-") as directory:
        job = Job(application, arguments, directory)
        shutil.copytree(job.inputs, job.directory / "local")
        local = job.run("local", "--mount", job.directory / "local")
        run_on_cluster(application, arguments, job, local)
    print("\nEverything is equal.")


def main(application, description):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mosa",
        required=True,
        type=pathlib.Path,
        help="the program mosa, with the daemons beside it",
    )
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="", help="of every host's link, each way (needs root)")
    parser.add_argument("--ram", default=application.ram, help="what each node may hold")
    parser.add_argument(
        "--systems", nargs="+", choices=SYSTEMS, default=["dss", "wass"], help="what to compare"
    )
    parser.add_argument("--slots", type=int, help="of each host; default: as mosa run chooses")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each system, in turns")
    parser.add_argument(
        "--platform", type=pathlib.Path, help="file of 'mosa identify': predict and plan the runs"
    )
    parser.add_argument(
        "--identify",
        type=float,
        metavar="SECONDS",
        help="instead of --platform: measure the platform first, in at most so many seconds",
    )
    parser.add_argument(
        "--report", type=pathlib.Path, metavar="FILE", help="HTML page about a run of the last system"
    )
    parser.add_argument(
        "--write",
        type=pathlib.Path,
        metavar="DIR",
        help="only write the workflow and its inputs there",
    )
    application.add_arguments(parser)
    arguments = parser.parse_args()
    arguments.mosa = arguments.mosa.resolve()
    if arguments.platform:
        arguments.platform = arguments.platform.resolve()
    if arguments.report:
        arguments.report = arguments.report.resolve()
    arguments.predicts = bool(arguments.platform or arguments.identify)
    # An end by a time limit ends the cluster too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        compare(application, arguments)
    except Failed as failure:
        print(f"{application.name}: {failure}", file=sys.stderr)
        return 1
    except Missing as missing:
        print(f"{application.name}: {missing}", file=sys.stderr)
        return 3
    return 0
