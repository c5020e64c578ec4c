"""The rows of the mounts' benchmark: what each measures, against what, and what is wanted."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    what: str
    unit: str
    baseline: str
    target: float  # Of value / baseline; of the value itself where it is a limit. None: only shown.
    limit: bool = False


def stream_rows():
    """Streams on the own node; rows by 4 KiB are only shown."""
    rows = []
    for group, how, targets in (
        ("local", "own node, passthrough", (0.9, 0.9, 0.9)),
        ("plain", "own node, no passthrough", (0.5, 0.5, 0.45)),
    ):
        for word, what, target in zip(
            ("write", "overwrite", "read"),
            ("write, fresh pages", "write over pages", "read, page cache dropped"),
            targets,
        ):
            rows.append(Row(f"{group}-{word}", f"{how}: {what}, 1 MiB", "MB/s", "tmpfs", target))
            rows.append(
                Row(f"{group}-{word}-4k", f"{how}: {what}, 4 KiB", "MB/s", "tmpfs", None)
            )
    return rows


def remote_rows():
    rows = []
    for suffix, rate, target in (("-1gbit", "1 Gbit/s", 0.95), ("", "no limit", 0.35)):
        for word in ("read", "write"):
            who = "one reader" if word == "read" else "one writer, over pages"
            what = f"{who}, file on another node, {rate}"
            rows.append(Row(f"remote-{word}{suffix}", what, "MB/s", "raw TCP", target))
    link = "bytes over the link, file striped over 4 nodes of 200 Mbit/s"
    rows.append(Row("striped-1", f"one reader, {link}", "MB/s", "raw TCP", 0.9))
    rows.append(Row("striped-4", f"four readers, {link}", "MB/s", "4 x raw TCP", 0.85))
    return rows


# Measured apart on a machine of the same size: operations per second of one client, and of eight
# over four mounts.
PEERS = {
    "create": ("MooseFS", {1: 2600, 4: 4700}),
    "create-small": ("GlusterFS", {1: 1400, 4: 1900}),
    "stat": ("MooseFS", {1: 5057}),
    "open": ("MooseFS", {1: 3300, 4: 5700}),
    "unlink": ("MooseFS", {1: 3204}),
}
NAMES = {
    "create": "create + close, empty",
    "create-small": "create + write 1 KB + close",
    "stat": "stat",
    "open": "open + close",
    "unlink": "unlink",
}


def name_rows():
    rows = []
    for phase, (peer, figures) in PEERS.items():
        for mounts in (1, 4):
            target = 1.5 if mounts in figures else None
            baseline = f"{peer} (constant)" if target else "-"
            what = f"{NAMES[phase]}, {mounts} mount{'s' if mounts > 1 else ''}"
            rows.append(Row(f"{phase}-{mounts}", what, "/s", baseline, target))
        fuse = f"{phase}-fuse"
        rows.append(Row(fuse, f"{NAMES[phase]}, 1 mount", "/s", "passthrough_ll on tmpfs", 0.5))
    return rows


def tag_rows():
    """What hints cost a loop that creates 10,000 files, against the same loop without."""
    what = "create + close, 10,000 files, hints {}"
    untagged = "the same loop without hints"
    return [
        Row("tag-inherit", what.format("by the directory"), "/s", untagged, 0.97),
        Row("tag-rule", what.format("by a rule"), "/s", untagged, 0.97),
        # Each file costs a system call more, and no call to the manager.
        Row("tag-xattr", what.format("by fsetxattr"), "/s", untagged, None),
        # Each file is given an object on its node: that is what the hint asks for.
        Row("tag-place", what.format("that place: pattern=pipeline"), "/s", untagged, None),
    ]


def memory_rows():
    what = "own memory (PSS - shared) while 4 GiB are {}"
    return [
        Row(f"memory-{who}-{word}", f"{who}: {what.format(done)}", "MiB", "-", 100, limit=True)
        for who in ("mount", "storage")
        for word, done in (("write", "written remotely"), ("read", "read remotely"))
    ]


ROWS = {
    row.name: row
    for row in [*stream_rows(), *remote_rows(), *name_rows(), *tag_rows(), *memory_rows()]
}


class Results:
    """Samples by row, and what they come to."""

    def __init__(self):
        self.samples = {}

    def add(self, name, value, baseline=None, **more):
        self.samples.setdefault(name, []).append({"value": value, "baseline": baseline, **more})

    def summary(self, name):
        row, samples = ROWS[name], self.samples[name]
        value = statistics.median(sample["value"] for sample in samples)
        result = {**dataclasses.asdict(row), "value": value, "samples": samples}
        if samples[0]["baseline"]:
            result["baseline_value"] = statistics.median(s["baseline"] for s in samples)
            result["ratio"] = statistics.median(s["value"] / s["baseline"] for s in samples)
        if row.limit:
            result["reached"] = value <= row.target
        elif row.target is not None:
            result["reached"] = result["ratio"] >= row.target
        for key in ("cpu_s_per_gb", "baseline_cpu_s_per_gb"):
            if key in samples[0]:
                result[key] = statistics.median(sample[key] for sample in samples)
        return result

    def summaries(self):
        return [self.summary(name) for name in ROWS if name in self.samples]


def to_markdown(summaries):
    def number(value):
        if value is None:
            return "-"
        return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

    lines = [
        "| row | what | value | baseline | ratio | target | reached | CPU s/GB (baseline) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for s in summaries:
        baseline = s["baseline"]
        if "baseline_value" in s:
            baseline += f" {number(s['baseline_value'])}"
        target = "-"
        if s["target"] is not None:
            target = f"<= {s['target']}" if s["limit"] else f">= {s['target']}"
        reached = {True: "yes", False: "**no**", None: "-"}[s.get("reached")]
        cpu = number(s.get("cpu_s_per_gb"))
        if "baseline_cpu_s_per_gb" in s:
            cpu += f" ({number(s['baseline_cpu_s_per_gb'])})"
        lines.append(
            f"| {s['name']} | {s['what']} | {number(s['value'])} {s['unit']} | {baseline} "
            f"| {number(s.get('ratio'))} | {target} | {reached} | {cpu} |"
        )
    return "\n".join(lines)
