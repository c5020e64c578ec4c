#!/usr/bin/env python3
"""The real Snakemake on a real cluster: the same outputs with the plug-in, without it and on a
local disk.

    tests/real_run.py --mosa build/release/bin/mosa --python VENV/bin/python --rate 200mbit
 VENV is a Python with this plug-in and Snakemake in it: `python3 -m venv VENV; VENV/bin/pip install
.`. It prints the time of each run and the bytes that went over the network, and fails unless
outputs are equal, hints are there, rules are gone afterwards, and the plug-in moved fewer bytes.
Exit code 77, with a reason, where it cannot run.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = HERE.parent


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def check(condition, text):
    if not condition:
        raise SystemExit(f"FAILED: {text}")


def run(command, **options):
    command = [str(word) for word in command]
    done = subprocess.run(
        command,
        **{
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "check": False,
            **options,
        },
    )
    check(
        done.returncode == 0,
        f"{' '.join(command)} ended with {done.returncode}: {(done.stdout + (done.stderr or '')).strip()[-3000:]}",
    )
    return done.stdout


class Store:
    """A cluster of this machine, from `with` to its end."""

    def __init__(self, arguments):
        self.mosa = str(pathlib.Path(arguments.mosa).resolve())
        self.name = f"snakemake-{os.getpid()}"
        self.flags = ["--hosts", str(arguments.hosts), "--ram", "256M", "--rate", arguments.rate]
        self.environment = {
            **os.environ,
            "MOSA_CLUSTER": self.name,
            "PATH": f"{pathlib.Path(self.mosa).parent}:{os.environ['PATH']}",
        }

    def __enter__(self):
        facts = json.loads(
            run([self.mosa, "cluster", "up", "--json", "--name", self.name, *self.flags])
        )
        self.mounts = {host["name"]: pathlib.Path(host["mount"]) for host in facts["hosts"]}
        return self

    def __exit__(self, *_):
        subprocess.run(
            [self.mosa, "cluster", "down", "--discard", "--name", self.name],
            capture_output=True,
            check=False,
        )

    def sent_bytes(self):
        total = 0
        for host in ["h0", *self.mounts]:
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
            )
            for line in text.splitlines()[2:]:
                name, _, numbers = line.partition(":")
                total += 0 if name.strip() == "lo" else int(numbers.split()[8])
        return total

    def written_bytes(self):
        """What the mount of each host has carried so far."""
        facts = [
            json.loads(os.getxattr(mount, "user.mosa.mount")) for mount in self.mounts.values()
        ]
        return [
            one["bytes_written_local"] + one["bytes_written_remote"] + one["bytes_written_inline"]
            for one in facts
        ]

    def rules(self):
        return json.loads(run([self.mosa, "hint", "rule", "list", "--json", "--name", self.name]))


def snakemake(arguments, snakefile, directory, environment, *flags):
    """Runs the workflow in `directory`; returns seconds and what it said."""
    directory.mkdir(exist_ok=True)
    begin = time.monotonic()
    command = [
        arguments.python,
        "-m",
        "snakemake",
        "--snakefile",
        HERE / snakefile,
        *flags,
        "--config",
        f"parts={arguments.parts}",
        f"megabytes={arguments.megabytes}",
    ]
    said = run(command, cwd=directory, env=environment, stderr=subprocess.STDOUT)
    return time.monotonic() - begin, said


def files_of(directory):
    return {
        str(path.relative_to(directory)): path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not any(part.startswith(".snakemake") for part in path.parts)
    }


def compare(store, name, expected):
    """Every file of the run, read through each host's mount."""
    for host, mount in store.mounts.items():
        found = files_of(mount / name)
        check(
            found.keys() == expected.keys(),
            f"{name} has {sorted(found)} on {host}, the local disk {sorted(expected)}",
        )
        for path, local in expected.items():
            check(local.stat().st_size, f"{path} is empty: equality would prove nothing")
            check(
                found[path].read_bytes() == local.read_bytes(),
                f"{path} of {name} differs on {host}",
            )


def hint(path, name):
    try:
        return os.getxattr(path, f"user.mosa.{name}").decode()
    except OSError:
        return None


def check_hints(top):
    group = hint(top / "hash/0", "pattern")
    check(group and group.startswith("reduce:all.txt"), f"hash/0 has the pattern {group}")
    check(hint(top / "raw/0", "pattern") == "pipeline", "raw/0 has no hint")
    check(hint(top / "table", "pattern").startswith("broadcast:"), "table has no hint")
    nodes = {os.getxattr(path, "user.mosa.location") for path in (top / "hash").iterdir()}
    check(len(nodes) == 1, f"what one job gathers lies on {nodes}")


def check_features(arguments, store, local, cluster):
    """Groups, pipes and flagged outputs: the files of a local run, and nothing left to do."""
    snakemake(arguments, "Features.smk", local, {**os.environ}, "--cores", "4")
    expected = files_of(local)
    check("raw/0" not in expected, "a temporary file is left on the local disk")
    top = store.mounts["h1"] / "features"
    flags = [*cluster, "--scheduler", "mosa"]
    seconds, _ = snakemake(arguments, "Features.smk", top, store.environment, *flags)
    compare(store, "features", expected)
    mode = (top / "sealed.txt").stat().st_mode & 0o777
    check(mode == 0o444, f"the protected output has the mode {mode:o}")
    _, said = snakemake(arguments, "Features.smk", top, store.environment, *flags)
    check("Nothing to be done" in said, f"the second run is not empty: {said}")
    check(store.rules() == [], f"rules are left: {store.rules()}")
    print(f"{'groups, pipes, flags':24} {seconds:6.1f} s, {len(expected)} files are equal")


def test(arguments):
    with Store(arguments) as store, tempfile.TemporaryDirectory() as directory:
        local = pathlib.Path(directory) / "local"
        seconds, _ = snakemake(arguments, "Snakefile", local, {**os.environ}, "--cores", "2")
        print(f"{'on a local disk':24} {seconds:6.1f} s", flush=True)
        expected = files_of(local)
        cluster = [
            "--jobs",
            arguments.hosts,
            "--executor",
            "mosa",
            "--mosa-hosts",
            ",".join(store.mounts),
        ]
        check_features(arguments, store, pathlib.Path(directory) / "features", cluster)
        sent = {}
        for name, flags in (
            ("without", ["--scheduler", "greedy"]),
            (
                "with",
                [
                    "--scheduler",
                    "mosa",
                    "--scheduler-mosa-link-mbit",
                    "200",
                    "--scheduler-mosa-slurm",
                ],
            ),
        ):
            top = store.mounts["h1"] / name
            before = store.sent_bytes()
            written = store.written_bytes()
            seconds, said = snakemake(
                arguments, "Snakefile", top, store.environment, *cluster, *flags
            )
            sent[name] = store.sent_bytes() - before
            print(
                f"{name + ' the plug-in':24} {seconds:6.1f} s {sent[name] / 1e6:8.1f} MB over the network",
                flush=True,
            )
            wrote = sum(now > was for now, was in zip(store.written_bytes(), written))
            check(wrote > 1, f"{name}: only {wrote} of the hosts wrote anything")
            compare(store, name, expected)
        check("slurm_extra=--prefer=h" in said, f"no job has a preference for Slurm: {said}")
        check_hints(store.mounts["h1"] / "with")
        check(
            hint(store.mounts["h1"] / "without/raw/0", "pattern") is None,
            "there is a hint without the plug-in",
        )
        check(store.rules() == [], f"rules are left: {store.rules()}")
        check(sent["with"] < sent["without"], "the plug-in saved no byte")
        print(
            f"{len(expected)} files are equal in all three runs, through the mounts of all {arguments.hosts} hosts"
        )


def make_environment(venv):
    """A Python with Snakemake and this plug-in as it is now, made if it is not there."""
    python = venv / "bin" / "python"
    steps = [[sys.executable, "-m", "venv", venv]] if not python.exists() else []
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory() as directory:
        # pip builds in the directory that it installs from.
        copy = pathlib.Path(directory) / "plugin"
        shutil.copytree(PLUGIN, copy)
        steps += [[*pip, copy], [*pip, "--force-reinstall", "--no-deps", copy]]
        for step in steps:
            done = subprocess.run(
                [str(word) for word in step], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
                skip(f"Snakemake cannot be installed in {venv}: {last}")
    return str(python)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mosa", required=True)
    parser.add_argument("--python", default=os.environ.get("MOSA_SNAKEMAKE_PYTHON", sys.executable))
    parser.add_argument("--venv", help="make this Python environment with Snakemake, and use it")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--megabytes", type=int, default=4, help="of each part")
    arguments = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("ip"):
        skip("needs root and network namespaces")
    if arguments.venv:
        arguments.python = make_environment(pathlib.Path(arguments.venv))
    modules = "import snakemake, snakemake_scheduler_plugin_mosa, snakemake_executor_plugin_mosa"
    found = subprocess.run(
        [arguments.python, "-c", modules], capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        skip(
            f"{arguments.python} has no Snakemake with the plug-in ({found.stderr.strip().splitlines()[-1]}):"
            f" 'python3 -m venv VENV; VENV/bin/pip install {PLUGIN}', then --python VENV/bin/python"
        )
    # An end by a time limit ends the cluster too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    test(arguments)


if __name__ == "__main__":
    main()
