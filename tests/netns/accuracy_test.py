"""tests/bench/accuracy.py on a small cell: predicted, then run on a real cluster, kept, and drawn as they are kept.

How right the predictions are is not asked here: the platform is a guess, and the machine may be busy.
"""

import json
import pathlib
import sys
import tempfile
import xml.etree.ElementTree

import cluster
from cluster import check

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

from harness import run  # noqa: E402

PLATFORM = HERE.parent / "predict" / "platform_guess.json"
CELLS = ["--only", "pattern=pipeline", "--only", "size=small", "--only", "hosts=4", "--only", "system=wass"]
SVG = "{http://www.w3.org/2000/svg}"


def accuracy(*words):
    return run(sys.executable, HERE.parent / "bench" / "accuracy.py", *CELLS, *words, limit_s=100)


def drawn(path):
    """Colors and heights of the bars, and all texts."""
    root = xml.etree.ElementTree.parse(path).getroot()
    bars = [(box.get("fill"), float(box.get("height"))) for box in root.iter(f"{SVG}rect")][1:]  # The first is the page.
    return bars, [text.text for text in root.iter(f"{SVG}text")]


def check_energy(entry):
    """Five hosts that are on for as long as the run, and what they do besides."""
    idle = 5 * 91.6 * entry["measured_s"]
    measured = entry["joules"]["measured"]
    check(idle < measured < 1.6 * idle, f"{measured} J of {entry['measured_s']} s")
    check(abs(entry["joules_above_idle"]["measured"] - (measured - idle)) < 0.01 * idle, f"{entry}")
    check(entry["energy_error"] == entry["joules"]["predicted"] / measured - 1, f"{entry}")


def check_subsets(out, cells):
    """Each has cells of its own, and shows of what is kept those."""
    for subset, count, shown in (("scaling", 36, 0), ("loopback", 11, 0), ("stores", 17, 0), ("main", 108, 1)):
        told = run(sys.executable, HERE.parent / "bench" / "accuracy.py", "--subset", subset, "--output", out, "--cells", cells,
                   "--table", limit_s=60)
        check(f"{shown} of {count} cells" in told, f"{subset}: {told}")


def test(arguments):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        scratch = pathlib.Path(scratch)
        cells = scratch / "cells.jsonl"
        accuracy("--bin", pathlib.Path(arguments.bin).resolve(), "--output", scratch / "out", "--cells", cells, "--repeats", "2..2",
                 "--draws", 19, "--platform", f"100mbit={PLATFORM}", "--plot", scratch / "first")
        kept = [json.loads(line) for line in cells.read_text(encoding="utf-8").splitlines()]
        check([entry["cell"]["system"] for entry in kept] == ["wass"], f"{len(kept)} cells were kept")
        table = accuracy("--output", scratch / "none", "--cells", cells, "--table", "--plot", scratch / "again")
        for name in ("pipeline.svg", "pipeline-stages.svg"):
            first, again = ((scratch / place / name).read_bytes() for place in ("first", "again"))
            check(first == again, f"{name} is of what is kept")
        bars, texts = drawn(scratch / "again" / "pipeline.svg")
        check([color for color, _ in bars] == ["#2a6f97", "#2a6f9760"], f"a measured and a predicted bar: {bars}")
        measured, predicted = (height for _, height in bars)  # They have one digit.
        ratio = kept[0]["predicted_s"] / kept[0]["measured_s"]
        check(abs(predicted - ratio * measured) < 0.1 + 0.1 * ratio, f"{bars} of {kept[0]}")
        check("seconds" in texts and any("predicted" in text for text in texts), f"{texts}")
        stages, _ = drawn(scratch / "again" / "pipeline-stages.svg")
        check(len(stages) == 2 * len(kept[0]["stages"]) == 6, f"{len(stages)} bars of stages")
        check("| pipeline | small x1 | wass | 4 |" in table, table)
        check_energy(kept[0])
        check_subsets(scratch / "no", cells)


if __name__ == "__main__":
    cluster.main(test, limit_s=200, description=__doc__)
