"""What `mosa explore` promises on its command line: the front, what is like the best, counts that add up; results that
are kept and used again; bad input is one sentence and an exit code.

    explore_test.py --mosa PROGRAM
"""

import argparse
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from predict_test import PLATFORM, WORKLOAD, check, good, predict, run

SPACE = """
nodes: [2, 4]
storage: 0..2
chunk: [1M, 64M, 128M]
system: [dss, wass]
"""
POWER = """
mosa_power: 1
levels:
  - {frequency_mhz: 2400, speed: 1, idle_w: 90, application_w: 30, storage_w: 35, network_w: 36, spread: 0.02}
  - {frequency_mhz: 1200, speed: 0.5, idle_w: 80, application_w: 15, storage_w: 20, network_w: 30, spread: 0.02}
"""


def explore(mosa, *words):
    platform = [] if "--platform" in words else ["--platform", PLATFORM]
    workload = [] if "--workload" in words else ["--workload", WORKLOAD]
    return json.loads(good(mosa, "--json", "explore", *platform, *workload, *words).stdout)


def whole(answer):
    """Everything but how long it took and what was remembered."""
    return {k: v for k, v in answer.items() if k not in ("seconds", "remembered")}


def test_answers(mosa, directory):
    space = pathlib.Path(directory) / "space.yaml"
    space.write_text(SPACE)
    answer = explore(mosa, "--space", space)
    points = answer["configurations"]
    # nodes=2 with storage=2 leaves no host.
    check(len(points) == answer["points"] == 30 and answer["impossible"] == 6, f"{answer['points']} points")
    check(answer["simulated"] + answer["pruned"] + answer["collapsed"] == 30, "every point has a fate")
    check(answer["collapsed"] == 10, "chunks larger than every file are alike")
    simulated = [p for p in points if p["fate"] == "simulated"]
    best = min(simulated, key=lambda p: p["turnaround_s"])
    check(answer["best"] == best["configuration"] == answer["front"][0], f"best: {answer['best']}")
    for point in simulated:
        check(point["turnaround_at_least_s"] <= point["turnaround_s"], f"a bound above: {point}")
        dominated = any(o["turnaround_s"] <= point["turnaround_s"] and o["node_hours"] <= point["node_hours"]
                        and (o["turnaround_s"], o["node_hours"]) != (point["turnaround_s"], point["node_hours"])
                        for o in simulated)
        check(point["on_front"] == (not dominated), f"front: {point}")
        if point["on_front"]:
            low, high = point["turnaround_interval_s"]
            check(low < point["turnaround_median_s"] < high, f"interval {low} to {high}: {point}")
    as_predicted = predict(mosa, "--config", answer["best"])
    check(as_predicted["turnaround_s"] == best["turnaround_s"], "the prediction of the best is that of mosa predict")
    # Its interval is not: it is of clusters of any seed, and here the seed is one of what may be varied.
    check(whole(explore(mosa, "--space", space, "--jobs", 1)) == whole(answer), "one core says the same as all")
    table = good(mosa, "explore", "--platform", PLATFORM, "--workload", WORKLOAD, "--space", space).stdout
    check("Pareto front by time and cost" in table and "6 combinations left out as impossible" in table, table)
    fixed = explore(mosa, "--space", space, "--vary", "chunk=2M", "--config", "manager=apart")
    check(all("chunk=2M" in p["configuration"] and "manager=apart" in p["configuration"] for p in fixed["configurations"]),
          "the command line wins, and what no dimension names is as --config says")
    wide = explore(mosa, "--config", "stripe=8", "--vary", "hosts=8,9")
    check(len(wide["configurations"]) == 2, "--config need not be possible without the dimensions")


def test_file_classes(mosa, directory):
    """Where classes of files lie: each combination once, as of mosa predict, and known from before."""
    results = pathlib.Path(directory) / "classes"
    words = ["--config", "hosts=2", "--vary", "system=wass,dss", "--vary", "placement:a.*=default,local,stripe",
             "--vary", "placement@turn=local,stripe", "--repeats", 0, "--no-prune"]
    answer = explore(mosa, *words, "--results", results)
    check(answer["points"] == 12 and answer["simulated"] == 7 and answer["collapsed"] == 5, f"without hints all are one: {answer}")
    points = {p["configuration"].split("seed=1,")[1] + "," + p["configuration"].split(",")[4]: p for p in answer["configurations"]}
    near = points["placement:a.*=local,placement@turn=local,system=wass"]["turnaround_s"]
    far = points["placement:a.*=stripe,placement@turn=local,system=wass"]["turnaround_s"]
    check(near < far, f"what was written elsewhere is read over the network: {near} and {far} s")
    for point in answer["configurations"]:
        if point["fate"] == "simulated":
            alone = predict(mosa, "--config", point["configuration"], "--repeats", 0)
            check(alone["turnaround_s"] == point["turnaround_s"], f"mosa predict says {alone['turnaround_s']}: {point}")
    again = explore(mosa, *words, "--results", results)
    check(again["remembered"] == again["simulations"] == 7 and whole(again) == whole(answer), "all was known")
    table = good(mosa, "explore", "--platform", PLATFORM, "--workload", WORKLOAD, *words).stdout
    check("placement:a.*=local,placement@turn=local" in table, table)
    space = pathlib.Path(directory) / "classes.yaml"
    space.write_text("system: [wass, dss]\nplacement:a.*: [default, local, stripe]\nplacement@turn: [local, stripe]\n")
    check(whole(explore(mosa, "--config", "hosts=2", "--space", space, "--repeats", 0, "--no-prune")) == whole(answer),
          "a file says it as well")


def drawing(path):
    """Its circles by radius, each the place and the color, and its texts."""
    root = xml.etree.ElementTree.parse(path).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    circles = {}
    for circle in root.iter(f"{svg}circle"):
        place = (float(circle.get("cx")), float(circle.get("cy")))
        circles.setdefault(circle.get("r"), []).append((place, circle.get("fill")))
        check(all(0 <= at <= float(root.get(side)) for at, side in zip(place, ("width", "height"))), f"{path}: {place}")
    return circles, [text.text for text in root.iter(f"{svg}text")]


def test_plots(mosa, directory):
    """Every point lies where its time and cost are; axes have units, and the front is there in words."""
    power = pathlib.Path(directory) / "plot_power.yaml"
    power.write_text(POWER)
    plots = pathlib.Path(directory) / "plots" / "deep"
    answer = explore(mosa, "--vary", "nodes=2..6", "--vary", "storage=0..2", "--vary", "chunk=64K,1M,64M", "--vary",
                     "placement:a.*=local,stripe", "--power", power, "--plot", plots)
    circles, texts = drawing(plots / "front.svg")
    simulated = [p for p in answer["configurations"] if "turnaround_s" in p]
    legend = [((24.0, 42.0), "#c44e52"), ((271.0, 41.0), "#2a6f97"), ((512.0, 42.0), "#b8b8b8")]
    dots = [c for c in circles["2.4"] if c not in legend]
    check(len(dots) == 2 * len(simulated), f"{len(dots)} dots of {len(simulated)} configurations over cost and energy")
    for cost, of_panel in (("node_hours", dots[:len(simulated)]), ("energy_j", dots[len(simulated):])):
        placed = list(zip(simulated, of_panel))
        for (one, (at_one, color)), (other, (at_other, _)) in zip(placed, placed[1:]):
            check(color == ("#2a6f97" if one["like_best"] else "#b8b8b8"), f"{color}: {one}")
            check((one[cost] - other[cost]) * (at_one[0] - at_other[0]) >= 0, f"{cost} to the right: {one} {other}")
            check((one["turnaround_s"] - other["turnaround_s"]) * (at_other[1] - at_one[1]) >= 0, f"time upwards: {one} {other}")
    check(len([c for c in circles["4.0"] if c not in legend]) == 2 * len(answer["front"]), f"{circles['4.0']}")
    check({"seconds", "node-hours", "kJ"} <= set(texts), f"units: {texts}")
    for number, configuration in enumerate(answer["front"], 1):
        chunk = next(word for word in configuration.split(",") if word.startswith("chunk="))
        check(texts.count(str(number)) >= 1 and any(text.startswith(f"{number_of(answer, configuration)} seconds, ") and chunk in text
                                           for text in texts), f"{configuration} in {texts}")
    circles, texts = drawing(plots / "curves.svg")
    titles = {"hosts in all", "hosts with storage only (0: storage is on the tasks' hosts)", "chunk size, bytes", "placement:a.*"}
    check(titles <= set(texts) and {"seconds", "node-hours", "kJ"} <= set(texts), f"{texts}")
    check({"64K", "1M", "64M", "local", "stripe"} <= set(texts), f"values: {texts}")
    check({color for _, color in circles["3.2"]} >= {"#2a6f97", "#c44e52"}, "a curve for each value of another dimension")
    # One configuration has no curves; none that ends well has no plots.
    explore(mosa, "--vary", "hosts=2", "--plot", plots.parent / "one")
    check([path.name for path in (plots.parent / "one").iterdir()] == ["front.svg"], "there is no dimension")
    done = good(mosa, "explore", "--platform", PLATFORM, "--workload", WORKLOAD, "--vary", "store=32M", "--plot", plots.parent / "none")
    check("nothing to plot" in done.stderr and not list((plots.parent / "none").iterdir()), done.stderr)
    # Pages of an earlier exploration do not stay.
    good(mosa, "explore", "--platform", PLATFORM, "--workload", WORKLOAD, "--vary", "store=32M", "--plot", plots)
    check(not list(plots.iterdir()), f"{list(plots.iterdir())}")


def test_plots_of_parts(mosa, directory):
    """What fails or was pruned is marked, and no curve goes across it."""
    plots = pathlib.Path(directory) / "parts"
    answer = explore(mosa, "--config", "hosts=4,store=44M", "--vary", "storage=0..3", "--vary", "chunk=64K,1M", "--no-prune",
                     "--plot", plots)
    failed = {p["configuration"].split("storage=")[1][0] for p in answer["configurations"] if "failure" in p}
    check(failed == {"1", "2"} and answer["failed"] == 4, f"storage where it fails: {failed}")
    root = xml.etree.ElementTree.parse(plots / "curves.svg").getroot()
    svg = "{http://www.w3.org/2000/svg}"
    second_row = 64 + 330
    starts = [float(line.get("points").split()[0].split(",")[1]) for line in root.iter(f"{svg}polyline")]
    check(len(starts) == 4 and min(starts) > second_row, f"over storage 0 and 3 are not joined, over chunk each is: {starts}")
    crosses = [line for line in root.iter(f"{svg}line") if abs(float(line.get("x2")) - float(line.get("x1")) - 6) < 0.2
               and abs(abs(float(line.get("y2")) - float(line.get("y1"))) - 6) < 0.2]
    check(len(crosses) == 2 * (4 + 4) * 2, f"what fails, in each panel: {len(crosses)} lines")
    _, texts = drawing(plots / "curves.svg")
    check(any("x: all simulated there fail, as 4 of 8 do" in text for text in texts), f"{texts}")
    _, texts = drawing(plots / "front.svg")
    check(any("8 simulated, of which 4 fail" in text for text in texts), f"{texts}")
    # What was pruned has bounds in every panel, and counts for what matters most.
    power = pathlib.Path(directory) / "parts_power.yaml"
    power.write_text(POWER)
    beside = {}
    for more in ([], ["--no-prune"]):
        answer = explore(mosa, "--vary", "nodes=4..20", "--vary", "storage=0..2", "--vary", "chunk=64K,1M", "--power", power,
                         "--repeats", 0, "--plot", plots, *more)
        check((answer["pruned"] > 0) == (not more), f"{answer['pruned']} pruned")
        root = xml.etree.ElementTree.parse(plots / "curves.svg").getroot()
        marks = [0, 0, 0]
        for line in root.iter(f"{svg}polyline"):
            x = [float(point.split(",")[0]) for point in line.get("points").split()]
            if len(x) == 3 and abs(x[2] - x[0] - 8) < 0.3:
                marks[int(x[0] // 560)] += 1
        check(marks[0] == marks[1] == marks[2] and (marks[0] > 0) == (not more), f"bounds in the panels: {marks}")
        beside[bool(more)] = [text.text for text in root.iter(f"{svg}text") if text.text and text.text.endswith(":")]
    check(beside[True] == beside[False] and "storage:" in beside[True], f"{beside}")
    # Whatever bytes a glob has, and however long words are, the pages are XML and say what each point is.
    words = "default,collocate:a_group_with_a_long_name,local,stripe"
    explore(mosa, "--vary", os.fsdecode(b"placement:[!\xff\xef\xbf\xbe]*=") + words, "--vary", "chunk=64K,1M", "--plot", plots)
    _, texts = drawing(plots / "curves.svg")
    check({"default", "local", "stripe"} <= set(texts) and any(".." in text and text.startswith("coll") for text in texts), f"{texts}")
    drawing(plots / "front.svg")


def number_of(answer, configuration):
    """Its seconds, with three digits."""
    seconds = next(p["turnaround_s"] for p in answer["configurations"] if p["configuration"] == configuration)
    return f"{seconds:.3g}"


def platform_with(directory, name, network, others, model=0):
    """The platform with this spread of its links, that one of the model, and one of all else."""
    def spread(figures):
        for figure in figures.values():
            if isinstance(figure, dict):
                figure["spread"] = others
                spread(figure)
        return figures
    figures = {key: spread(value) if isinstance(value, dict) else value
               for key, value in json.loads(PLATFORM.read_text()).items()}
    for section in figures.values():
        if isinstance(section, dict):
            section.pop("spread", None)
    figures["network"]["spread"] = network
    figures["model"]["spread"] = model
    path = pathlib.Path(directory) / name
    path.write_text(json.dumps(figures))
    return path


def test_like_best(mosa, directory):
    """Draws are common to all: what is slower in every one of them is slower, wherever its interval lies."""
    chunks = "chunk=64K,256K,512K,1M,2M,4M"
    links = platform_with(directory, "links.json", 0.1, 0)
    answer = explore(mosa, "--platform", links, "--config", "system=dss", "--vary", "hosts=2..4", "--vary", chunks,
                     "--vary", "replicas=1,2")
    best = next(p for p in answer["configurations"] if p["configuration"] == answer["best"])
    slower = [p for p in answer["configurations"] if p.get("turnaround_interval_s") and not p["like_best"]
              and p["turnaround_interval_s"][0] <= best["turnaround_interval_s"][1]]
    check(slower and best["like_best"], f"{len(slower)} overlap and are slower")
    check(all(f"hosts={best['configuration'][6]}," in c for c in answer["like_best"]),
          f"with other hosts it is a quarter slower: {answer['like_best']}")
    # What the model is off by is in every interval, and tells no configurations apart.
    off = platform_with(directory, "off.json", 0.1, 0, 0.4)
    answer_off = explore(mosa, "--platform", off, "--config", "system=dss", "--vary", "hosts=2..4", "--vary", chunks,
                         "--vary", "replicas=1,2")
    check(answer_off["like_best"] == answer["like_best"], f"{answer_off['like_best']} and {answer['like_best']}")
    wide = next(p for p in answer_off["configurations"] if p["configuration"] == answer["best"])["turnaround_interval_s"]
    narrow = best["turnaround_interval_s"]
    check(wide[1] / wide[0] > 1.5 * narrow[1] / narrow[0], f"{wide} and {narrow}")
    # As measured some 15 % slower, but not by every draw; what is measured best need not have the least median.
    all_spread = platform_with(directory, "all.json", 0.02, 0.02)
    answer = explore(mosa, "--platform", all_spread, "--config", "system=dss,hosts=2", "--vary", chunks, "--no-prune")
    check(answer["undecided"] == 0 and all(p["fate"] == "simulated" for p in answer["configurations"]), f"{answer}")
    for point in answer["configurations"]:
        check(point["turnaround_interval_s"], f"no draws: {point}")
    medians = [next(p for p in answer["configurations"] if p["configuration"] == c)["turnaround_median_s"]
               for c in answer["like_best"]]
    check(medians == sorted(medians), f"the least median first: {medians}")
    table = good(mosa, "explore", "--platform", links, "--workload", WORKLOAD, "--vary", "hosts=2,3").stdout
    check("MEDIAN" in table, table)


def test_energy(mosa, directory):
    power = pathlib.Path(directory) / "power.yaml"
    power.write_text(POWER)
    answer = explore(mosa, "--power", power, "--vary", "hosts=2", "--vary", "frequency=1200,2400", "--no-prune")
    slow, fast = answer["configurations"]
    check(slow["turnaround_s"] > fast["turnaround_s"], "half the speed is slower")
    for point, frequency in ((slow, 1200), (fast, 2400)):
        alone = predict(mosa, "--config", "hosts=2", "--power", power, "--frequency", frequency)
        check(point["energy_j"] == alone["energy_j"], f"energy as of mosa predict: {point} {alone['energy_j']}")
    table = good(mosa, "explore", "--platform", PLATFORM, "--workload", WORKLOAD, "--power", power, "--vary", "hosts=1,2").stdout
    check("time, cost and energy" in table and "KJ" in table, table)


def test_failures(mosa):
    answer = explore(mosa, "--vary", "hosts=1,2", "--vary", "store=64M,1G")
    failing = [p for p in answer["configurations"] if "failure" in p]
    check(len(failing) == answer["failed"] >= 1 and " full: '" in failing[0]["failure"], f"{failing}")
    check(not any(p["configuration"] in answer["front"] + answer["like_best"] for p in failing), "what fails is no choice")
    table = good(mosa, "explore", "--platform", PLATFORM, "--workload", WORKLOAD, "--vary", "store=32M").stdout
    check("Every configuration would fail" in table and " full: '" in table, table)
    twins = explore(mosa, "--vary", "hosts=2", "--vary", "store=32M", "--vary", "slots=0,2")
    check(twins["failed"] == 2 and twins["collapsed"] == 1, "what cannot differ fails as well")
    table = good(mosa, "explore", "--platform", PLATFORM, "--workload", WORKLOAD, "--vary", "hosts=2", "--vary", "slots=0,2").stdout
    check("and 1 equivalent" in table, table)


def test_results(mosa, directory):
    results = pathlib.Path(directory) / "results"
    words = ["--vary", "nodes=1..4", "--vary", "chunk=1M,64M", "--results", results]
    first = explore(mosa, *words)
    check(first["remembered"] == 0, "nothing was known")
    lines = results.read_text().splitlines()
    check(len(lines) == 1 + first["simulations"] and all(json.loads(line) for line in lines), f"{len(lines)} lines")
    second = explore(mosa, *words)
    check(second["remembered"] == second["simulations"], "all was known")
    check(whole(second) == whole(first), "and says the same")
    # Killed while it wrote: the last line is cut short, the ones before count.
    results.write_text("\n".join(lines[:10]) + "\n" + lines[10][:30])
    third = explore(mosa, *words)
    check(third["remembered"] == 9 and whole(third) == whole(first), f"{third['remembered']} remembered")
    # The same lines in another order: more than one core wrote them.
    check(sorted(results.read_text().splitlines()) == sorted(lines), "what was lost is there again")
    # What an outcome depends on is in its key.
    check(explore(mosa, *words, "--config", "seed=2")["remembered"] == 0, "another seed is another question")
    # 128M and 64M cannot differ.
    other = explore(mosa, "--vary", "nodes=1..4", "--vary", "chunk=1M,128M", "--results", results)
    check(other["remembered"] == other["simulations"], "what cannot differ is known")


def test_results_key(mosa, directory):
    """All that an outcome depends on is in its key, and nothing else."""
    path = pathlib.Path(directory)
    words = ["--vary", "hosts=1..3", "--results", path / "keyed", "--repeats", 0]
    first = explore(mosa, *words)
    workload, platform, power = path / "other.yaml", path / "other_platform.json", path / "other_power.yaml"
    workload.write_text(WORKLOAD.read_text().replace("runtime: 0.5", "runtime: 0.6"))
    platform.write_text(PLATFORM.read_text().replace('"ns_per_call": 32000', '"ns_per_call": 32001'))
    power.write_text(POWER)
    for what, expected, more in (
            ("another workload", 0, ["--workload", workload]),
            ("another platform", 0, ["--platform", platform]),
            ("another frequency", 0, ["--power", power, "--vary", "frequency=1200"]),
            # What hosts draw is reckoned after the simulation.
            ("powers alone", first["simulations"], ["--power", power])):
        answer = explore(mosa, *words, *more)
        check(answer["remembered"] == expected, f"{what}: {answer['remembered']} remembered")
    for what, runtime in (("a runtime of 0", "runtime: 0.0"), ("no runtime", "")):
        workload.write_text(WORKLOAD.read_text().replace("runtime: 0.125", runtime).replace(", }", "}"))
        check(explore(mosa, *words, "--workload", workload)["remembered"] == 0, what)
    joules = [p["energy_j"] for p in answer["configurations"]]
    check(joules == [predict(mosa, "--config", f"hosts={n}", "--power", power)["energy_j"] for n in (1, 2, 3)], f"{joules}")
    with open(path / "keyed", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = run(mosa, "explore", "--platform", PLATFORM, "--workload", WORKLOAD, *words)
    check(done.returncode == 3 and "another exploration is writing" in done.stderr, done.stderr)


def test_changed_results(mosa, directory):
    """A line that was changed is not believed; a header that was cut short is no result yet."""
    path = pathlib.Path(directory) / "changed"
    words = ["explore", "--platform", PLATFORM, "--workload", WORKLOAD, "--vary", "hosts=1,2", "--repeats", 0, "--results", path]
    good(mosa, *words)
    whole_text = path.read_text()
    first = json.loads(whole_text.splitlines()[1])
    for name, value in (("turnaround_ns", -5), ("turnaround_ns", first["turnaround_ns"] - 1), ("sending_s", 1e300),
                        ("failure", "of old age")):
        lines = whole_text.splitlines()
        lines[1] = json.dumps({**first, name: value})
        path.write_text("\n".join(lines) + "\n")
        done = run(mosa, *words)
        check(done.returncode == 3 and f"line 2 of {path}" in done.stderr, f"{name}={value}: {done.returncode} {done.stderr}")
    path.write_text(whole_text.splitlines()[0][:9])
    good(mosa, *words)
    check(sorted(path.read_text().splitlines()) == sorted(whole_text.splitlines()), "a new file")
    path.write_text('{"mosa_exploration":1}\n')
    done = run(mosa, *words)
    check(done.returncode == 3 and "of version 1" in done.stderr, done.stderr)


def test_interrupt(mosa, directory):
    """Killed at any moment, it goes on from what it had."""
    results = pathlib.Path(directory) / "killed"
    words = ["--json", "explore", "--platform", PLATFORM, "--workload", WORKLOAD, "--vary", "nodes=1..20", "--vary",
             "storage=0..8", "--vary", "seed=1..4", "--no-prune", "--repeats", 0, "--results", results]
    running = subprocess.Popen([mosa, *map(str, words)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not results.exists() or results.read_bytes().count(b"\n") < 20:
        check(running.poll() is None and time.monotonic() < deadline, "it did not get far")
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.wait()
    had = results.read_bytes().count(b"\n") - 1
    answer = json.loads(good(mosa, *words).stdout)
    check(answer["remembered"] == had, f"{answer['remembered']} of {had} remembered")
    check(answer["simulated"] == answer["simulations"], "and the rest simulated")


def test_bad_input(mosa, directory):
    path = pathlib.Path(directory) / "other.json"
    path.write_text('{"a": 1}\n')
    broken = pathlib.Path(directory) / "broken"
    broken.write_text('{"mosa_exploration": 3}\n{"key": "12"}\n')
    pipe = pathlib.Path(directory) / "pipe"
    os.mkfifo(pipe)
    fast = pathlib.Path(directory) / "fast.json"
    fast.write_text(PLATFORM.read_text().replace('"speed": 1', '"speed": 1e999'))
    sizeless = pathlib.Path(directory) / "sizeless.yaml"
    sizeless.write_text("tasks: [{id: a, command: 'true', outputs: [x]}]")
    rows = [
        ([], "nothing to explore"),
        (["--vary", "hosts=1..1000", "--vary", "seed=1..1000000"], "more than 100000 values"),
        (["--vary", "hosts=1..1000", "--vary", "seed=1..100000"], "the space has 100000000 points, but at most 100000"),
        (["--vary", "hosts=1", "--config", "colour=red"], "and for explorations nodes, frequency"),
        (["--vary", "hosts=1", "--platform", fast], "is out of range"),
        (["--vary", "hosts=1", "--results", "/dev/full"], "/dev/full is not a regular file"),
        (["--vary", "hosts=1", "--results", "/dev/zero"], "/dev/zero is not a regular file"),
        (["--vary", "hosts=1", "--results", pipe], "is not a regular file"),
        (["--vary", "storage="], "'storage' has no value"),
        (["--vary", "hosts=1,2", "--vary", "replicas=1,3"], "no configuration with replicas=3 is possible"),
        (["--vary", "nodes=3", "--vary", "storage=1,3"], "no configuration with storage=3 is possible"),
        (["--vary", "hosts=2", "--vary", "stripe=0,5"], "there are only 2 storage nodes"),
        (["--vary", "frequency=1200"], "'frequency' needs a power file"),
        (["--vary", "hosts=1", "--repeats", 5], "--repeats 5: 0, or 19 and more"),
        (["--vary", "hosts=1", "--space", "/nonexistent"], "cannot read /nonexistent"),
        (["--vary", "hosts=1", "--results", path], "is not a results file of mosa explore"),
        (["--vary", "hosts=1", "--results", broken], "line 2 of"),
        (["--vary", "hosts=1", "--results", "/nonexistent/results"], "cannot write /nonexistent/results"),
        (["--vary", "hosts=1", "--workload", sizeless], "file 'x' has no size"),
        (["--vary", "hosts=1", "--plot", path], "for the plots"),
        (["--vary", "hosts=1", "--plot", "/proc/nowhere"], "cannot create /proc/nowhere for the plots"),
        (["--vary", "hosts=1", "--plot", "/proc"], "cannot write /proc/front.svg"),
        (["--vary", "placement:x/*=local,stripe"], "placement:x/*: no task of 'pipeline' writes a file that it matches"),
        (["--vary", "placement@x=local"], "'pipeline' has no such stage; its stages are join, make, turn"),
        (["--vary", "placement:a.*=local", "--vary", "placement@make=local"], "'a.1' belongs to two classes"),
        (["--vary", "placement:a.*=far"], "placement:a.*=far: it must be default, near, stripe, local"),
    ]
    for words, expected in rows:
        workload = [] if "--workload" in words else ["--workload", WORKLOAD]
        platform = [] if "--platform" in words else ["--platform", PLATFORM]
        done = run(mosa, "explore", *platform, *workload, *words)
        lines = done.stderr.strip().split("\n")
        check(done.returncode in (2, 3) and not done.stdout, f"{expected}: exit code {done.returncode}, {done.stdout}")
        check(len(lines) == 1 and expected in lines[0], f"expected '{expected}': {done.stderr}")
    check(path.read_text() == '{"a": 1}\n', "a file of something else is left alone")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mosa", required=True)
    mosa = parser.parse_args().mosa
    with tempfile.TemporaryDirectory() as directory:
        test_answers(mosa, directory)
        test_file_classes(mosa, directory)
        test_plots(mosa, directory)
        test_plots_of_parts(mosa, directory)
        test_like_best(mosa, directory)
        test_energy(mosa, directory)
        test_failures(mosa)
        test_results(mosa, directory)
        test_results_key(mosa, directory)
        test_changed_results(mosa, directory)
        test_interrupt(mosa, directory)
        test_bad_input(mosa, directory)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
