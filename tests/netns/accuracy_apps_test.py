"""tests/bench/accuracy_apps.py on the smallest Montage: seen on one host, advised, predicted, then run, and kept with what was
promised. How right that is, is not asked: the platform is a guess, and the machine may be busy.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import cluster
from cluster import SKIPPED, check

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

from harness import run  # noqa: E402

PLATFORM = HERE.parent / "predict" / "platform_guess.json"
STAGES = {"stageIn", "mProject", "mImgtbl", "mOverlaps", "mDiff", "mFitplane", "mConcatFit", "mBgModel", "mBackground", "mAdd",
          "mJPEG"}


def accuracy(*words):
    return run(sys.executable, HERE.parent / "bench" / "accuracy_apps.py", "--only", "montage", "--tiles", 2, *words, limit_s=150)


def test(arguments):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        out = pathlib.Path(scratch) / "out"
        accuracy("--bin", pathlib.Path(arguments.bin).resolve(), "--output", out, "--repeats", 1, "--draws", 19, "--platform",
                 f"200mbit={PLATFORM}")
        entries = [json.loads(line) for line in (out / "cells.jsonl").read_text(encoding="utf-8").splitlines()]
        check([entry["cell"]["system"] for entry in entries] == ["dss", "wass", "advised"], f"{entries}")
        first_run = min(path.stat().st_mtime_ns for path in out.glob("*/*/montage-2.*.0.run.json"))
        for entry in entries:
            check({stage["stage"] for stage in entry["stages"]} == STAGES, f"stages of {entry}")
            check(next(out.glob("*/*/" + entry["prediction"])).stat().st_mtime_ns < first_run, "all is predicted before the first run")
            check(entry["run_cpu_s"] > 0 and entry["network_bytes"]["measured"] > 0, f"{entry}")
        check([gain["over"] for gain in entries[2]["gains"]] == ["dss", "wass"], f"{entries[2]}")
        table = accuracy("--output", pathlib.Path(scratch) / "none", "--cells", out / "cells.jsonl", "--table")
        check("| montage | 2 | advised | 1M | 4 | 200mbit |" in table and "| over dss |" in table, table)


if __name__ == "__main__":
    if not shutil.which("mProjectPP"):
        print("skipped: Montage is not installed")
        sys.exit(SKIPPED)
    cluster.main(test, limit_s=200, description=__doc__)
