"""Reads a trace as ui.perfetto.dev and chrome://tracing do, but refuses what they would draw wrong or drop in silence.

Trace Event Format, JSON object form: complete events ("X") with times in microseconds, and metadata ("M") that names
processes and threads.
"""

import collections
import json
import math

Slice = collections.namedtuple("Slice", "name category process thread begin_ns end_ns args")
Trace = collections.namedtuple("Trace", "slices processes threads")
# What metadata has in its args, and of what kind.
METADATA = {"process_name": ("name", str), "thread_name": ("name", str), "process_sort_index": ("sort_index", int)}


class Malformed(Exception):
    """What is wrong, in which event."""


def need(condition, what, event):
    if not condition:
        raise Malformed(f"{what}: {json.dumps(event)[:300]}")


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def nanoseconds(event, field):
    value = event.get(field)
    need(isinstance(value, (int, float)) and not isinstance(value, bool), f"{field} is no number", event)
    need(math.isfinite(value) and 0 <= value < 2**53, f"{field} is out of range", event)
    whole = round(value * 1000)
    need(abs(value * 1000 - whole) < 1e-2, f"{field} is not of whole nanoseconds", event)
    return whole


def read_metadata(event, trace):
    kind = event["name"]
    need(kind in METADATA, "no such metadata", event)
    name, of_kind = METADATA[kind]
    need(isinstance(event.get("args"), dict) and list(event["args"]) == [name], f"args have not {name} alone", event)
    value = event["args"][name]
    need(isinstance(value, of_kind) and value != "", f"{name} is of another kind", event)
    if kind == "process_sort_index":
        return
    known, key = ((trace.processes, event["pid"]) if kind == "process_name" else
                  (trace.threads, (event["pid"], event["tid"])))
    need(key not in known, "it is named twice", event)
    known[key] = value


def read_slice(event, trace):
    need(isinstance(event.get("cat"), str), "cat is no text", event)
    need(isinstance(event.get("args", {}), dict), "args is no object", event)
    need(set(event) <= {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}, "there is an unknown field", event)
    begin = nanoseconds(event, "ts")
    trace.slices.append(Slice(event["name"], event["cat"], event["pid"], event["tid"], begin,
                              begin + nanoseconds(event, "dur"), event.get("args", {})))


def check_tracks(trace):
    """Slices of a track lie in or beside each other: what overlaps in part is drawn wrong."""
    tracks = collections.defaultdict(list)
    for each in trace.slices:
        tracks[each.process, each.thread].append(each)
    for (process, thread), slices in tracks.items():
        need(process in trace.processes, "a process without a name", {"pid": process})
        need((process, thread) in trace.threads, "a thread without a name", {"pid": process, "tid": thread})
        open_until = []
        for each in sorted(slices, key=lambda s: (s.begin_ns, -s.end_ns)):
            while open_until and open_until[-1] <= each.begin_ns:
                open_until.pop()
            need(not open_until or each.end_ns <= open_until[-1], "it overlaps another of its track in part", each._asdict())
            open_until.append(each.end_ns)
    need(set(trace.threads) == set(tracks), "a name of a thread without a slice", sorted(set(trace.threads) - set(tracks)))


def refuse(value):
    raise Malformed(f"{value} is no JSON")


def read(text):
    """The trace that the text (bytes) is; Malformed if it is none."""
    try:
        root = json.loads(text.decode("utf-8"), parse_constant=refuse)
    except ValueError as error:
        raise Malformed(str(error)) from error
    need(isinstance(root, dict) and isinstance(root.get("traceEvents"), list), "no traceEvents", root)
    need(root.get("displayTimeUnit") in ("ms", "ns"), "displayTimeUnit is ms or ns", root.get("displayTimeUnit"))
    trace = Trace([], {}, {})
    for event in root["traceEvents"]:
        need(isinstance(event, dict) and event.get("ph") in ("X", "M"), "no slice and no metadata", event)
        need(isinstance(event.get("name"), str) and event["name"] != "", "no name", event)
        need(is_whole(event.get("pid")) and is_whole(event.get("tid")), "pid or tid is no whole number", event)
        (read_slice if event["ph"] == "X" else read_metadata)(event, trace)
    check_tracks(trace)
    return trace
