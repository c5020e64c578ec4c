#!/usr/bin/env python3
"""BLAST over a Mosa cluster on this machine, checked byte for byte against the same run on a local
disk.
 Unmodified programs of the package ncbi-blast+ work on real proteins (package mmseqs2-examples):
makeblastdb on one host, blastp for parts of the queries on all hosts, each through its own mount,
and one merged table.

    tools/workflows/blast.py --mosa build/release/bin/mosa
    tools/workflows/blast.py --mosa build/release/bin/mosa --hosts 8 --rate 200mbit --queries 400

Exit code 0 only if everything is equal; 3 if a program or the proteins are not installed.
"""

import gzip
import os
import pathlib
import random
import sys

import comparison

SEQUENCES = os.environ.get("MOSA_SEQUENCES", "/usr/share/doc/mmseqs2/example-data")
# What makeblastdb writes of so few proteins that they are one volume.
DATABASE = [
    f"database/proteins.{suffix}"
    for suffix in ("pdb", "phr", "pin", "pog", "pos", "pot", "psq", "ptf", "pto")
]


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


ACIDS = "ACDEFGHIKLMNPQRSTVWY"
MUTATED = 0.4  # Share of the residues of a repeated protein that are drawn anew.


def repeat_sequences(sequences, megabytes):
    """As many proteins as have so many megabytes: the given ones, and mutants of them."""
    rng = random.Random(1)
    size = 0
    for turn in range(1 << 20):
        for sequence in sequences:
            if turn > 0:
                head, _, residues = sequence.partition("\n")
                name, _, rest = head.partition(" ")
                letters = bytearray(residues.replace("\n", ""), "ascii")
                for _ in range(int(MUTATED * len(letters))):
                    letters[int(rng.random() * len(letters))] = ord(ACIDS[int(rng.random() * 20)])
                sequence = f"{mutant_name(name, turn)} {rest}\n{letters.decode()}\n"
            yield sequence
            size += len(sequence)
            if size >= megabytes * 1_000_000:
                return


def mutant_name(name, turn):
    """A name of its own, in a form that makeblastdb takes as it is."""
    return f">lcl|{turn}_{''.join(c if c.isalnum() else '_' for c in name[1:])}"[:50]


class Blast(comparison.Application):
    name = "blast"
    ram = "256M"

    def add_arguments(self, parser):
        parser.add_argument("--queries", type=int, default=96)
        parser.add_argument("--parts", type=int, default=16)
        parser.add_argument(
            "--proteins", type=int, default=0, help="in the database; 0: all 20,000"
        )
        parser.add_argument(
            "--megabytes",
            type=int,
            default=0,
            help="of proteins in the database: the proteins, and mutants of them; 0: no mutants",
        )
        parser.add_argument(
            "--sequences", default=SEQUENCES, help="where DB.fasta.gz and QUERY.fasta.gz are"
        )

    def check(self, arguments):
        comparison.need_programs("ncbi-blast+", "makeblastdb", "blastp", "blastdbcmd")
        if not (pathlib.Path(arguments.sequences) / "DB.fasta.gz").exists():
            raise comparison.Missing(
                f"{arguments.sequences}/DB.fasta.gz is missing: install the package mmseqs2-examples"
            )
        if not 1 <= arguments.parts <= arguments.queries:
            raise comparison.Failed(
                f"--parts {arguments.parts} is not between 1 and --queries {arguments.queries}"
            )

    def prepare(self, arguments, inputs):
        queries = read_sequences(arguments.sequences, "QUERY.fasta.gz", arguments.queries)
        proteins = read_sequences(arguments.sequences, "DB.fasta.gz", arguments.proteins)
        if arguments.megabytes:
            proteins = repeat_sequences(proteins, arguments.megabytes)
        with open(inputs / "proteins.fasta", "w", encoding="ascii") as file:
            file.writelines(proteins)
        (inputs / "queries").mkdir()
        tasks = [
            {
                "id": "makeblastdb",
                "stage": "makeblastdb",
                "inputs": ["proteins.fasta"],
                "outputs": DATABASE,
                "command": "makeblastdb -in proteins.fasta -dbtype prot -parse_seqids -title proteins -out database/proteins",
            }
        ]
        names = [f"{number:03}" for number in range(arguments.parts)]
        for number, name in enumerate(names):
            # Every `parts`-th query, so that all parts take about as long.
            (inputs / f"queries/{name}.fasta").write_text(
                "".join(queries[number :: arguments.parts]), encoding="ascii"
            )
            tasks.append(
                {
                    "id": f"blastp-{name}",
                    "stage": "blastp",
                    "inputs": [f"queries/{name}.fasta", *DATABASE],
                    "outputs": [f"results/{name}.tsv"],
                    "command": f"blastp -query queries/{name}.fasta -db database/proteins -out results/{name}.tsv"
                    " -outfmt 6 -evalue 1e-3 -num_threads 1",
                }
            )
        results = [f"results/{name}.tsv" for name in names]
        tasks.append(
            {
                "id": "merge",
                "stage": "merge",
                "inputs": results,
                "outputs": ["merged.tsv"],
                "command": f"cat {' '.join(results)} > merged.tsv",
            }
        )
        return {"tasks": tasks}

    def may_be_empty(self, path):
        return path.startswith("results/")

    def is_dated(self, path):
        return path.endswith(".pin")

    def compare_data(self, mounted, local):
        dumps = [
            comparison.run(
                [
                    "blastdbcmd",
                    "-db",
                    directory / "database/proteins",
                    "-entry",
                    "all",
                    "-outfmt",
                    "%f",
                ]
            )
            for directory in (mounted, local)
        ]
        if not dumps[0] or dumps[0] != dumps[1]:
            raise comparison.Failed(
                "the database (blastdbcmd -entry all) differs from the local disk's"
            )


if __name__ == "__main__":
    sys.exit(comparison.main(Blast(), __doc__))
