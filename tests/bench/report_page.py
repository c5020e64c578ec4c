#!/usr/bin/env python3
"""How long a comparison and its report take for runs of few and of many tasks, and whether the page can be used.

  tests/bench/report_page.py --bin build/release/bin --platform lab.json --output report.out

On a cluster of four hosts (root) real runs of 10 and of 10,000 tasks (--tasks): a half writes a file of 4 KiB each, the other
half reads one of these. `mosa compare` and `mosa report` take their records; the page is opened in headless Chromium without
network. Shown are the seconds of both commands, the page's bytes, the seconds until it is drawn, and those until what a person
does there is on the screen: coming closer in the timeline, finding a task. Screenshots are in --output. Without --platform the
cluster is measured by `mosa identify` first. Exit code 1 if an aim is missed (0 with --no-gate): a comparison in 5 s, a page of
10 MB, drawn and used in 2 s.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))

from browser import Browser, program  # noqa: E402
from cluster import Cluster, check, print_table, why_not  # noqa: E402
from harness import run  # noqa: E402

HOSTS = 4
ANOMALY = 7
COMPARE_S, PAGE_BYTES, USABLE_S = 5, 10_000_000, 2
OPENED = 5  # So often each page.

# Milliseconds until what was asked for is drawn, and whether the timeline is another picture then.
DRAWN = """requestAnimationFrame(() => requestAnimationFrame(() => {
  const took = performance.now() - began;
  done([took, document.querySelector('canvas').toDataURL() !== before]); }))"""
CLOSER = f"""new Promise((done) => {{
  const before = document.querySelector('canvas').toDataURL();
  const began = performance.now(), canvas = document.querySelector('canvas'), box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new WheelEvent('wheel', {{deltaY: -100, ctrlKey: true, clientX: box.x + box.width / 2, clientY: box.y + 30,
                                                 bubbles: true, cancelable: true}}));
  {DRAWN}; }})"""
FIND = f"""new Promise((done) => {{
  const before = document.querySelector('canvas').toDataURL();
  const began = performance.now(), field = document.querySelector('input');
  field.value = 'use_1';
  field.dispatchEvent(new Event('input', {{bubbles: true}}));
  {DRAWN}; }})"""


def workflow(count):
    tasks = []
    for number in range(count // 2):
        tasks.append({"id": f"make_{number}", "command": f"head -c 4096 /dev/zero > part.{number}", "inputs": [], "outputs": [f"part.{number}"],
                      "runtime": 0.003})
        tasks.append({"id": f"use_{number}", "command": f"cat part.{number} > /dev/null", "inputs": [f"part.{number}"], "outputs": [], "runtime": 0.003})
    return {"name": f"{count} tasks", "tasks": tasks, "files": {f"part.{number}": {"size": 4096} for number in range(count // 2)}}


def timed(command):
    began = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode in (0, ANOMALY), f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return time.monotonic() - began


def seconds(answer):
    took_ms, is_changed = answer
    check(is_changed, "the timeline looks as before")
    return took_ms / 1e3


def look_at(page, picture):
    """Seconds until the page is drawn, until it has come closer, and until a task is found: the median of several times each."""
    taken = []
    with Browser() as browser:
        for _ in range(OPENED):
            opened = browser.open(page)
            if not taken:
                browser.screenshot(picture)
            taken.append((opened, seconds(browser.evaluate(CLOSER)), seconds(browser.evaluate(FIND))))
    return [statistics.median(column) for column in zip(*taken)]


def measure(arguments, store, count):
    path, record, page = (arguments.out / f"{count}.{kind}" for kind in ("json", "run.json", "html"))
    path.write_text(json.dumps(workflow(count)), encoding="utf-8")
    run(arguments.bin / "mosa", "run", path, "--cluster", store.name, "--dir", store.directory, "--workdir", f"r{count}", "--record", record)
    said = ["--platform", arguments.platform, "--config", "manager=apart"]
    compared = timed([arguments.bin / "mosa", "--json", "compare", *said, "--run", record])
    reported = timed([arguments.bin / "mosa", "report", record, *said, "-o", page])
    return [compared, reported, page.stat().st_size, *look_at(page, page.with_suffix(".png"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="the directory of mosa and its daemons")
    parser.add_argument("--tasks", type=int, nargs="+", default=[10, 10_000])
    parser.add_argument("--platform", type=pathlib.Path, help="instead of `mosa identify`")
    parser.add_argument("-o", "--output", dest="out", type=pathlib.Path, default=pathlib.Path("report.out"))
    parser.add_argument("--no-gate", action="store_true")
    arguments = parser.parse_args()
    reason = why_not() or (None if program() else "there is no Chromium (package chromium)")
    if reason:
        sys.exit(f"report_page.py: {reason}")
    arguments.bin, arguments.out = arguments.bin.resolve(), arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows, missed = [], False
    with Cluster(arguments.bin, HOSTS) as store:
        if not arguments.platform:
            arguments.platform = arguments.out / "platform.json"
            run(arguments.bin / "mosa", "identify", "--cluster", store.name, "--dir", store.directory, "-o", arguments.platform)
        for count in arguments.tasks:
            compared, reported, size, opened, closer, found = measure(arguments, store, count)
            rows.append([f"{count:,}", f"{compared:.2f}", f"{reported:.2f}", f"{size / 1e6:.2f}", f"{opened:.2f}", f"{closer:.3f}", f"{found:.3f}"])
            missed = missed or compared > COMPARE_S or size > PAGE_BYTES or max(opened, closer, found) > USABLE_S
    print_table(["TASKS", "COMPARE S", "REPORT S", "PAGE MB", "DRAWN S", "CLOSER S", "FOUND S"], rows)
    if missed and not arguments.no_gate:
        sys.exit(1)


if __name__ == "__main__":
    main()
