#!/usr/bin/env python3
"""Two papers, MTC Envelope and Fighting with Unknowns, on this machine: what stores carry, what applications ask of them,
and who foretells how long that takes.

  tests/bench/envelope.py --bin build/release/bin
  tests/bench/envelope.py --bin build/release/bin --only applications --repeats 5
  tests/bench/envelope.py --output envelope.out --table > tables.md

Three parts, each about ten minutes; needs root, GlusterFS, Montage, BLAST and fio:

  stores        `mosa envelope run` of three stores in turns, from the same hosts: Mosa, a central server (GlusterFS: one brick
                on a host of its own), and a tmpfs of this machine; all on one page
  applications  Montage, BLAST and manysmall (tools/workflows), seen once on one host; `mosa envelope profile` has Tables 1 to
                3. On hosts with slower links: the envelope of Mosa, then each application --repeats times without hints (dss)
                and as often traced; `mosa envelope classify` lays both envelope models and the simulator beside what the mounts
                measured (Table 5), and whole stages beside runs that nobody watches
  capacity      `mosa capacity run --check` on four hosts

A part that is done stays in --output, as long as programs and settings are the same: after Ctrl-C the same command begins only the part
anew that it was at.
"""

import argparse
import json
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

import envelope_report as report  # noqa: E402
from accuracy_stores import Gluster, Mosa  # noqa: E402
from applications import Application  # noqa: E402
from cluster import Cluster, Failed, why_not  # noqa: E402
from harness import TROUBLE, build_of, digest, end_as_interrupted, platform_of, run  # noqa: E402

PARTS = ("stores", "applications", "capacity")
CLIENTS = (1, 2, 4, 8)
ROUNDS_MAX = 10
MIXES = ("16K:50%r:0.5,1M:50%r:0.5", "operations=16K:50%r:0.5,1M:50%r:0.5", "operations=16K:50%r:0.9,1M:50%r:0.1",
         "operations=16K:100%r:0.9,1M:100%r:0.1")


class WithServer(Gluster):
    """Mosa's cluster, and a GlusterFS of one brick on the manager's host, mounted on all others."""

    VOLUMES = ("central",)
    SERVERS = ("h0",)

    def words(self):
        """For `mosa envelope run`: both, from inside the hosts."""
        mosa = self.mount("h1").replace("/h1/", "/{host}/")
        enter = f"nsenter --net=/run/netns/mosa-{self.name}-{{host}} -- sh -c"
        return [f"mosa={mosa}", f"central={self._mount('central', '{host}')}", "--hosts", ",".join(self.hosts), "--exec", enter]


def is_done(path):
    return path.exists() and json.loads(path.read_text(encoding="utf-8")).get("outcome") == "done"


def measure_whole(arguments, out, *words):
    """One of `mosa envelope run` and `mosa capacity run`, again until it has all samples: each goes on for --budget seconds."""
    out.unlink(missing_ok=True)  # Of a store that is no more.
    for _ in range(ROUNDS_MAX):
        run(*arguments.before, arguments.mosa, *words, "--budget", arguments.budget, limit_s=arguments.budget + 300)
        if is_done(out):
            return
    raise Failed(f"{out.name} has not all samples after {ROUNDS_MAX} times {arguments.budget} s: give a longer --budget")


def envelope_words(clients, out):
    return ["--clients", ",".join(map(str, clients)), "--repeats", 3, "--output", out]


def measure_stores(arguments):
    out = arguments.out / "stores.json"
    if not is_done(out):
        memory = pathlib.Path(f"/dev/shm/mosa-envelope-{digest(str(out))}")
        with WithServer(arguments.bin, arguments.hosts, rate=arguments.rate, ram="512M") as store:
            memory.mkdir(exist_ok=True)
            try:
                measure_whole(arguments, out, "envelope", "run", f"tmpfs={memory}", *store.words(), *envelope_words(CLIENTS, out))
            finally:
                shutil.rmtree(memory, ignore_errors=True)
    plot(arguments, out)


def plot(arguments, envelope):
    run(arguments.mosa, "envelope", "plot", envelope, "--output", envelope.with_suffix(".svg"))


# ---- applications

def applications_of(arguments):
    flags = {"montage": ["--tiles", arguments.tiles], "blast": ["--parts", 8, "--queries", 48], "manysmall": []}
    made = {}
    for name, words in flags.items():
        application = Application(arguments.mosa, arguments.out, name, *words, before=arguments.before, resume=True)
        made[name] = (application, application.see(arguments.bin))
    return made


def run_once(arguments, store, application, name, traces=None):
    """One run on the cluster, into `traces` if that is given; what is there already stays. The record of the run."""
    done = arguments.out / f"{application.name}.{name}.done"
    record = arguments.out / f"{application.name}.{name}.run.json"
    if done.exists():
        return record
    where = ["--name", store.name, "--dir", store.directory]
    application.stage_in(store)
    if traces:
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir()
        run(arguments.mosa, "trace", "start", "-o", traces, *where)
    seconds = application.run(store, name, "--system", "dss")["seconds"]
    if traces:
        run(arguments.mosa, "trace", "stop", *where)
    done.write_text(f"{seconds}\n", encoding="utf-8")
    print(f"{application.name} {name}: {seconds:.3f} s", file=sys.stderr, flush=True)
    return record


def run_all(arguments, store, application):
    """(records, traces) of --repeats runs that nobody watches and as many that are traced, in turns."""
    records, traces = [], []
    for repeat in range(arguments.repeats):
        place = arguments.out / f"{application.name}.{repeat}.traces"
        records.append(run_once(arguments, store, application, f"plain.{repeat}"))
        run_once(arguments, store, application, f"traced.{repeat}", place)
        traces.append(sorted(place.iterdir()))
    return records, traces


def task_seconds(tasks, begin, end):
    """{stage: seconds of all its tasks together}."""
    seconds = {}
    for task in tasks:
        seconds[task["stage"]] = seconds.get(task["stage"], 0) + task[end] - task[begin]
    return seconds


def whole_stages(predicted, records):
    """{stage: what its tasks took together, as simulated, of that computing, and in each run}."""
    simulated = task_seconds(predicted["tasks"], "start_s", "end_s")
    runs = [task_seconds(json.loads(path.read_text(encoding="utf-8"))["tasks"], "start", "end") for path in records]
    computed = {}
    for task in predicted["tasks"]:
        computed[task["stage"]] = computed.get(task["stage"], 0) + task["compute_s"]
    return {stage: {"simulated_s": seconds, "computed_s": computed[stage], "measured_s": [each[stage] for each in runs]}
            for stage, seconds in simulated.items()}


def classify(arguments, platform, seen, repeats):
    """What `mosa envelope classify` says with the traces of each run."""
    config = f"hosts={arguments.app_hosts},manager=apart,slots=1,system=dss"
    words = [arguments.mosa, "--json", "envelope", "classify", "--envelope", arguments.out / "mosa.json", *seen, "--clients",
             arguments.app_hosts, "--platform", platform, "--config", config]
    return [json.loads(run(*words, "--trace", *traces)) for traces in repeats]


def measure_applications(arguments):
    platform = platform_of(arguments, arguments.app_rate, arguments.programs, "1G",
                           lambda: Mosa(arguments.bin, 3, rate=arguments.app_rate, ram="1G"))
    made = applications_of(arguments)
    envelope, ran = arguments.out / "mosa.json", {}
    with Cluster(arguments.bin, arguments.app_hosts, rate=arguments.app_rate, ram="1G") as store:
        if not is_done(envelope):
            clients = [count for count in CLIENTS if count <= arguments.app_hosts]
            measure_whole(arguments, envelope, "envelope", "run", "--cluster", store.name, "--dir", store.directory,
                          *envelope_words(clients, envelope))
        for name, (application, _) in made.items():
            ran[name] = run_all(arguments, store, application)
    plot(arguments, envelope)
    config = f"hosts={arguments.app_hosts},manager=apart,slots=1,system=dss"
    told = {}
    for name, (_, seen) in made.items():
        predicted = json.loads(run(arguments.mosa, "--json", "predict", "--platform", platform, *seen, "--config", config, "--repeats", 0,
                                   "--bound", envelope))
        records, traces = ran[name]
        told[name] = {"profile": json.loads(run(arguments.mosa, "--json", "envelope", "profile", *seen)),
                      "runs": classify(arguments, platform, seen, traces), "stages": whole_stages(predicted, records),
                      "bound": predicted["bound"]}
    (arguments.out / "applications.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


# ---- capacity

def measure_capacity(arguments):
    out = arguments.out / "capacity.json"
    if not is_done(out):
        mixes = [word for mix in MIXES for word in ("--mix", mix)]
        with Cluster(arguments.bin, 4) as store:
            measure_whole(arguments, out, "capacity", "run", "--cluster", store.name, "--dir", store.directory, "--check",
                          "--ratios", "10,50,90", "--seconds", 1, *mixes, "-o", out)
    run(arguments.mosa, "capacity", "plot", out, arguments.out / "capacity")
    shown = run(arguments.mosa, "--json", "capacity", "show", out)
    (arguments.out / "capacity.shown.json").write_text(shown, encoding="utf-8")


MEASURE = {"stores": measure_stores, "applications": measure_applications, "capacity": measure_capacity}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, help="the directory of mosa and its daemons; --table needs none")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("-o", "--output", dest="out", type=pathlib.Path, default=pathlib.Path("envelope.out"), help="what was measured, and pictures")
    parser.add_argument("--hosts", type=int, default=8, help="of the stores that are laid beside each other")
    parser.add_argument("--rate", default="1gbit", help="of their links")
    parser.add_argument("--app-hosts", type=int, default=4, help="on which applications run")
    parser.add_argument("--app-rate", default="200mbit", help="of their links")
    parser.add_argument("--tiles", type=int, default=49, help="of Montage")
    parser.add_argument("--repeats", type=int, default=3, help="runs of an application")
    parser.add_argument("--budget", type=int, default=540, help="seconds of one command that measures a store; it is given again until there are all samples")
    parser.add_argument("--platform", action="append", default=[], metavar="RATE=FILE", help="instead of `mosa identify`")
    parser.add_argument("--before", default="", help="words before each measuring command, to share a machine")
    parser.add_argument("--table", action="store_true", help="only show what is in --output, as Markdown")
    arguments = parser.parse_args()
    if not arguments.bin and not arguments.table:
        parser.error("--bin is missing: the programs that are measured")
    if arguments.app_hosts > max(CLIENTS):
        parser.error(f"--app-hosts {arguments.app_hosts}: envelopes have {max(CLIENTS)} clients at most")
    arguments.before, arguments.out = arguments.before.split(), arguments.out.resolve()
    arguments.platform = {rate: pathlib.Path(path) for rate, path in (word.split("=", 1) for word in arguments.platform)}
    return arguments


def begin(arguments):
    """A directory of its own for what these programs measure with these settings; `last` is where the tables look."""
    arguments.bin = arguments.bin.resolve()
    arguments.mosa, build = arguments.bin / "mosa", build_of(arguments.bin)
    settings = [getattr(arguments, name) for name in ("hosts", "rate", "app_hosts", "app_rate", "tiles")]
    own = f"{build['programs']}-{digest(settings)}"
    arguments.programs = build["programs"]
    (arguments.out / own).mkdir(parents=True, exist_ok=True)
    (arguments.out / own / "settings.json").write_text(
        json.dumps({**build, **{n: getattr(arguments, n) for n in ("hosts", "rate", "app_hosts", "app_rate", "tiles", "repeats")}}),
        encoding="utf-8")
    (arguments.out / "last").unlink(missing_ok=True)
    (arguments.out / "last").symlink_to(own)
    arguments.out /= own


def main():
    arguments = parse()
    end_as_interrupted()
    if arguments.table:
        print(report.tables(arguments.out / "last"))
        return
    reason = why_not()
    if reason:
        sys.exit(f"envelope.py: {reason}")
    begin(arguments)
    failed = []
    for part in PARTS if not arguments.only else (arguments.only,):
        try:
            MEASURE[part](arguments)
        except TROUBLE as error:
            failed.append(part)
            print(f"{part}: failed: {error}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            sys.exit("envelope.py: interrupted: the same command goes on")
    print(report.tables(arguments.out))
    if failed:
        sys.exit(f"envelope.py: failed, as told above: {', '.join(failed)}")


if __name__ == "__main__":
    main()
