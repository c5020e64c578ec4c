# What Snakemake offers beside plain files and jobs of their own: groups, pipes, temp(), directory(),
# protected(), a checkpoint.
rule all:
    input: "all.txt", "letters.txt", "sealed.txt"

rule raw:
    output: temp("raw/{part}")
    group: "parts"
    shell: "seq {wildcards.part} 7 300000 > {output}"

rule sorted:
    input: "raw/{part}"
    output: "sorted/{part}"
    group: "parts"
    shell: "sort -r {input} > {output}"

rule produce:
    output: pipe("numbers")
    shell: "seq 100000 > {output}"

rule middle:
    input: "numbers"
    output: pipe("doubled")
    shell: "sed 's/.*/& &/' {input} > {output}"

rule consume:
    input: "doubled"
    output: "counted.txt"
    shell: "wc {input} | sed 's/ doubled//' > {output}"

checkpoint split:
    input: "sorted/1"
    output: directory("pieces")
    shell: "mkdir -p {output}/deep && split -n l/3 {input} {output}/piece. && echo deep > {output}/deep/er"

rule letter:
    input: "pieces/piece.{letter}"
    output: "letters/{letter}"
    shell: "cksum < {input} > {output}"

def letters(wildcards):
    directory = checkpoints.split.get().output[0]
    found = glob_wildcards(os.path.join(directory, "piece.{letter}")).letter
    return expand("letters/{letter}", letter=sorted(found))

rule letters:
    input: letters
    output: "letters.txt"
    shell: "cat {input} > {output}"

rule sealed:
    input: "counted.txt", "pieces"
    output: protected("sealed.txt")
    shell: "cat {input[0]} {input[1]}/deep/er > {output}"

rule gather:
    input: expand("sorted/{part}", part=range(3))
    output: "all.txt"
    shell: "cat {input} | cksum > {output}"
