#!/usr/bin/env python3
"""BLAST over a Mosa cluster on this machine, checked byte for byte against the same run on a local disk.

Unmodified programs of the package ncbi-blast+ work on real proteins (package mmseqs2-examples): makeblastdb on
the first host's mount, queries split into parts, blastp on all hosts at once, each through its own mount, and one
merged table. Then it is shown where every byte lies and which path carried it.

    tools/workflows/blast.py --mosa build/release/bin/mosa
    tools/workflows/blast.py --mosa build/release/bin/mosa --hosts 8 --rate 200mbit --queries 400

Exit code 0 only if everything is equal; 3 if a program or the proteins are not installed.
"""

import argparse
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SEQUENCES = os.environ.get("MOSA_SEQUENCES", "/usr/share/doc/mmseqs2/example-data")


class Failed(Exception):
    """Something did not work or was not equal; the text says what."""


class Missing(Exception):
    """Something must be installed first; the text says what."""


def run(command, **options):
    """Runs a program to its end and returns its standard output."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip() or "it said nothing"
        raise Failed(f"'{' '.join(command)}' ended with exit code {done.returncode}: {last}")
    return done.stdout


def human(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def print_table(rows):
    """First column to the left, the others to the right; the first row is the heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip())


class Host:
    """Where programs run, and the directory that they share with the other hosts."""

    def __init__(self, name, prefix, directory):
        self.name = name
        self.prefix = prefix
        self.directory = pathlib.Path(directory)

    def run(self, *command):
        return run([*self.prefix, *command])


class Stages:
    """Wall-clock seconds of each stage, in order."""

    def __init__(self):
        self.seconds = {}

    def time(self, name, action):
        begin = time.monotonic()
        result = action()
        self.seconds[name] = time.monotonic() - begin
        return result


def read_sequences(directory, name, count):
    """The first `count` sequences of a compressed FASTA file (0: all), one text each."""
    sequences = []
    with gzip.open(pathlib.Path(directory) / name, "rt", encoding="ascii") as file:
        for line in file:
            if line.startswith(">"):
                if count and len(sequences) == count:
                    break
                sequences.append([])
            sequences[-1].append(line)
    return ["".join(lines) for lines in sequences]


def make_database(host, fasta):
    top = host.directory
    for name in ("database", "queries", "results"):
        (top / name).mkdir()
    if host.prefix:
        # What one host alone writes stays where it is written; the database is striped over all.
        os.setxattr(top / "results", "user.mosa.placement", b"local")
    host.run("cp", fasta, top / "proteins.fasta")
    host.run("makeblastdb", "-in", top / "proteins.fasta", "-dbtype", "prot", "-parse_seqids", "-title", "proteins",
             "-out", top / "database/proteins")


def split_queries(host, queries, parts):
    """Every `parts`-th query into one file, so that all take about as long."""
    names = [f"part-{number:03}" for number in range(parts)]
    for number, name in enumerate(names):
        text = "".join(queries[number::parts])
        (host.directory / "queries" / f"{name}.fasta").write_text(text, encoding="ascii")
    return names


def search(hosts, names):
    """All parts over all hosts: each host takes the next one when it has finished its last."""
    waiting = collections.deque(names)

    def work(host):
        while waiting:
            try:
                name = waiting.popleft()
            except IndexError:
                return
            top = host.directory
            host.run("blastp", "-query", top / f"queries/{name}.fasta", "-db", top / "database/proteins",
                     "-out", top / f"results/{name}.tsv", "-outfmt", "6", "-evalue", "1e-3", "-num_threads", "1")

    with concurrent.futures.ThreadPoolExecutor(len(hosts)) as pool:
        for done in [pool.submit(work, host) for host in hosts]:
            done.result()


def merge(host, names):
    top = host.directory
    host.run("sh", "-c", 'out=$1; shift; cat "$@" > "$out"', "sh", top / "merged.tsv",
             *[top / f"results/{name}.tsv" for name in names])


def workflow(hosts, fasta, queries, parts):
    """The whole job; returns the names of the parts and the stages' times."""
    stages = Stages()
    stages.time("database", lambda: make_database(hosts[0], fasta))
    names = stages.time("split", lambda: split_queries(hosts[0], queries, parts))
    stages.time("search", lambda: search(hosts, names))
    stages.time("merge", lambda: merge(hosts[0], names))
    return names, stages.seconds


def check_equal(what, mosa, local):
    if mosa != local:
        at = next((i for i, (a, b) in enumerate(zip(mosa, local)) if a != b), min(len(mosa), len(local)))
        raise Failed(f"{what} differs at byte {at} ({len(mosa)} bytes on Mosa, {len(local)} on the local disk)")
    print(f"  equal: {what}, {len(local):,} bytes")


def compare(mosa_hosts, local, names):
    """Every result, read through a host that did not merge it; the database through its own program."""
    reader = mosa_hosts[-1]
    if not (local.directory / "merged.tsv").stat().st_size:
        raise Failed("the search found nothing, so equality would prove nothing")
    for name in ["merged.tsv"] + [f"results/{part}.tsv" for part in names]:
        ours = (reader.directory / name).read_bytes()
        theirs = (local.directory / name).read_bytes()
        if name == "merged.tsv" or ours != theirs:
            check_equal(name, ours, theirs)
    print(f"  equal: its {len(names)} parts")
    dumps = [host.run("blastdbcmd", "-db", host.directory / "database/proteins", "-entry", "all", "-outfmt", "%f")
             for host in (reader, local)]
    check_equal("the database (blastdbcmd -entry all)", *dumps)


# ---- where the bytes are


def bytes_by_node(path):
    """How many of a file's bytes each node holds: {name: bytes}, from its layout piece by piece."""
    size = path.stat().st_size
    layout = json.loads(os.getxattr(path, "user.mosa.layout"))
    if layout["inline"] or not layout["segments"]:
        return {"inline": size}
    chunk_bytes = layout["chunk_size"]
    held = collections.Counter()
    ends = [s["begin"] for s in layout["segments"][1:]] + [size]
    for segment, end in zip(layout["segments"], ends):
        at = segment["begin"]
        while at < min(end, size):
            position = (at // chunk_bytes - segment["begin"] // chunk_bytes) % segment["width"]
            next_chunk = (at // chunk_bytes + 1) * chunk_bytes
            piece_end = min(next_chunk, end, size)
            held[segment["nodes"][position]] += piece_end - at
            at = piece_end
    return held


def class_of(relative):
    """The kind of file that a row of the table sums up."""
    folder = relative.parts[0] if len(relative.parts) > 1 else ""
    if folder == "database":
        return f"database *{relative.suffix}"
    return {"queries": "query parts", "results": "result parts"}.get(folder, relative.name)


def show_places(hosts):
    columns = [host.name for host in hosts] + ["inline"]
    rows = collections.defaultdict(collections.Counter)
    counts = collections.Counter()
    total = 0
    top = hosts[0].directory
    for path in sorted(p for p in top.rglob("*") if p.is_file()):
        kind = class_of(path.relative_to(top))
        rows[kind].update(bytes_by_node(path))
        counts[kind] += 1
        total += path.stat().st_size
    table = [["bytes of", "files", *columns, "together"]]
    for kind, held in rows.items():
        table.append([kind, str(counts[kind]), *[human(held[c]) if held[c] else "-" for c in columns],
                      human(sum(held.values()))])
    everything = sum(rows.values(), collections.Counter())
    table.append(["all", str(sum(counts.values())), *[human(everything[c]) for c in columns], human(total)])
    print("\nWhere every byte lies (inline: in the manager's record of a small file)")
    print_table(table)
    if sum(everything.values()) != total:
        raise Failed(f"the files have {total} bytes, but their layouts place {sum(everything.values())}")


PATHS = {
    "read: local": "bytes_read_local",
    "remote": "bytes_read_remote",
    "inline": "bytes_read_inline",
    "written: passthrough": "bytes_written_passthrough",
    "local ": "bytes_written_local",
    "remote ": "bytes_written_remote",
    "inline ": "bytes_written_inline",
}


def show_paths(hosts):
    print("\nWhich path carried the bytes, as each mount counted (the kernel reads passed-through files by itself, uncounted)")
    table = [["mount of", *PATHS, "opens passed through"]]
    for host in hosts:
        counters = json.loads(os.getxattr(host.mount_point, "user.mosa.mount"))
        table.append([host.name, *[human(counters[name]) for name in PATHS.values()],
                      str(counters["opens_passthrough"])])
    print_table(table)


def show_times(mosa_seconds, local_seconds):
    print("\nSeconds per stage")
    rows = [["stage", "Mosa", "local disk"]]
    rows += [[stage, f"{mosa_seconds[stage]:.2f}", f"{local_seconds[stage]:.2f}"] for stage in mosa_seconds]
    rows.append(["together", f"{sum(mosa_seconds.values()):.2f}", f"{sum(local_seconds.values()):.2f}"])
    print_table(rows)


def run_on_cluster(arguments, fasta, queries, local, cluster):
    up = [arguments.mosa, "cluster", "up", "--json", "--hosts", arguments.hosts, "--ram", arguments.ram, *cluster]
    if arguments.rate:
        up += ["--rate", arguments.rate]
    facts = json.loads(run(up))
    where = "network namespaces" if facts["namespaces"] else "plain processes (not root)"
    print(f"Cluster of {arguments.hosts} hosts as {where}"
          + (f", {arguments.rate} each way" if arguments.rate else ""))
    hosts = []
    for host in facts["hosts"]:
        prefix = [arguments.mosa, "cluster", "exec", *cluster, host["name"], "--"]
        hosts.append(Host(host["name"], prefix, pathlib.Path(host["mount"]) / "blast"))
        hosts[-1].mount_point = host["mount"]
    hosts[0].directory.mkdir()
    names, mosa_seconds = workflow(hosts, fasta, queries, arguments.parts)
    _, local_seconds = workflow([local] * arguments.hosts, fasta, queries, arguments.parts)
    print(f"{len(queries)} queries in {len(names)} parts against the database, on Mosa and on a local disk:")
    compare(hosts, local, names)
    show_places(hosts)
    show_paths(hosts)
    show_times(mosa_seconds, local_seconds)


def job(arguments):
    for program in ("makeblastdb", "blastp", "blastdbcmd"):
        if not shutil.which(program):
            raise Missing(f"{program} is not installed: install the package ncbi-blast+")
    if not (pathlib.Path(arguments.sequences) / "DB.fasta.gz").exists():
        raise Missing(f"{arguments.sequences}/DB.fasta.gz is missing: install the package mmseqs2-examples")
    if not 1 <= arguments.parts <= arguments.queries:
        raise Failed(f"--parts {arguments.parts} is not between 1 and --queries {arguments.queries}")
    queries = read_sequences(arguments.sequences, "QUERY.fasta.gz", arguments.queries)
    proteins = read_sequences(arguments.sequences, "DB.fasta.gz", arguments.proteins)
    cluster = ["--name", f"blast-{os.getpid()}"]
    with tempfile.TemporaryDirectory(prefix="mosa-blast-") as directory:
        fasta = pathlib.Path(directory) / "proteins.fasta"
        fasta.write_text("".join(proteins), encoding="ascii")
        local = Host("local", [], pathlib.Path(directory) / "run")
        local.directory.mkdir()
        try:
            run_on_cluster(arguments, fasta, queries, local, cluster)
        finally:
            subprocess.run([str(arguments.mosa), "cluster", "down", *cluster], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
    print("\nEverything is equal.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mosa", required=True, type=pathlib.Path, help="the program mosa, with the daemons beside it")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="", help="of every host's link, each way (needs root)")
    parser.add_argument("--ram", default="256M", help="what each node may hold")
    parser.add_argument("--queries", type=int, default=96)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--proteins", type=int, default=0, help="in the database; 0: all 20,000")
    parser.add_argument("--sequences", default=SEQUENCES, help="where DB.fasta.gz and QUERY.fasta.gz are")
    arguments = parser.parse_args()
    arguments.mosa = arguments.mosa.resolve()
    try:
        job(arguments)
    except Failed as failure:
        print(f"blast: {failure}", file=sys.stderr)
        return 1
    except Missing as missing:
        print(f"blast: {missing}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
