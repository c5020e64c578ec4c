"""What envelope.py has measured, as Markdown: the tables of the papers MTC Envelope and Fighting with Unknowns, remade."""

import json
import statistics

from accuracy_report import mean_of, to_markdown

SHARINGS = ("1-to-1", "N-to-1", "few-to-1")
METHODS = {"coarse_s": "coarse", "fine_s": "fine", "simulated_s": "simulator"}
SHORT_S = 0.02  # Of a phase: below it a share of a second is little of anything.
AIM, BEATS = 0.10, 0.80


def read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def size_of(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.4g} {unit}"
        count /= 1024


def three(number):
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


# ---- envelopes

def rate_rows(result):
    """{(system, metric): [rate of each number of clients]}, of the file size where it is the highest."""
    clients = sorted({cell["clients"] for cell in result["cells"]})
    rows = {}
    for cell in result["cells"]:
        for key, unit, divisor in (("operations_per_second", "op/s", 1), ("bytes_per_second", "MB/s", 1e6)):
            if key in cell:
                most = rows.setdefault((cell["operation"], unit, cell["system"]), dict.fromkeys(clients, 0))
                most[cell["clients"]] = max(most[cell["clients"]], cell[key]["median"] / divisor)
    return clients, rows


def busy_of(result, system, clients):
    shares = [share for cell in result["cells"] if (cell["system"], cell["clients"]) == (system, clients)
              for share in cell.get("busy_shares", []) if share is not None]
    return f"{statistics.median(shares):.0%}" if shares else "-"


def envelope_tables(result):
    clients, rows = rate_rows(result)
    titles = ["METRIC", "UNIT", "STORE", *[f"{count} CLIENT{'S' * (count > 1)}" for count in clients]]
    parts = [to_markdown(titles, [[*key, *map(three, most.values())] for key, most in sorted(rows.items(), key=lambda row: row[0][:2])])]
    systems = list(dict.fromkeys(system for _, _, system in rows))
    parts.append(to_markdown(["PROCESSORS BUSY", *titles[3:]], [[s, *[busy_of(result, s, count) for count in clients]] for s in systems]))
    falls = [[f["system"], f["operation"], size_of(f["size_bytes"]) if f["size_bytes"] else "-", f["clients"],
              three(f["operations_per_second"]), f["best_clients"], three(f["best_operations_per_second"]),
              "-" if f["busy_share"] is None else f"{f['busy_share']:.0%}", f["used_up"] or "not known"]
             for f in result["falls"]]
    if falls:
        parts.append(to_markdown(["FALLS", "OPERATION", "SIZE", "CLIENTS", "OP/S", "BEST CLIENTS", "BEST OP/S", "BUSY", "USED UP"], falls))
    for system in systems:
        own = [f for f in result["falls"] if f["system"] == system]
        early = [f for f in own if f["used_up"] != "processors"]
        parts.append(f"{system}: {len(own)} falls beyond the intervals, {len(early)} of them before the processors are busy.")
    parts += result["notes"]
    return parts


# ---- applications

def profile_rows(name, profile):
    """Rows of Tables 1, 2 and 3."""
    one, two, three_rows = [], [], []
    for s in profile["stages"]:
        stage = [name, s["name"]]
        one.append([*stage, s["tasks"], s["files_read"], *[s["files_read_by_sharing"][k] for k in SHARINGS], s["files_written"],
                    size_of(s["bytes_read"]), size_of(s["bytes_written"])])
        two.append([*stage, s["open_spikes"], s["open_concurrency_max"], s["create_spikes"], s["create_concurrency_max"],
                    *[s["read_spikes"][k] for k in SHARINGS]])
        three_rows.append([*stage, s["trace_length"], s["read_concurrency_max"], s["write_concurrency_max"],
                           size_of(s["bytes_read_per_call_max"]), size_of(s["bytes_written_per_call_max"])])
    return one, two, three_rows


PROFILE_TITLES = (
    ["APPLICATION", "STAGE", "TASKS", "FILES READ", "1-TO-1", "N-TO-1", "FEW-TO-1", "FILES WRITTEN", "READ", "WRITTEN"],
    ["APPLICATION", "STAGE", "OPEN SPIKES", "MOST OPENS", "CREATE SPIKES", "MOST CREATES", "1-TO-1 SPIKES", "N-TO-1", "FEW-TO-1"],
    ["APPLICATION", "STAGE", "TRACE LENGTH", "MOST READS", "MOST WRITES", "READ PER CALL", "WRITTEN PER CALL"])


def phases_of(name, runs):
    """A dictionary for the input and the output of each stage, with the mean of what the runs measured."""
    for number, stage in enumerate(runs[0]["stages"]):
        for phase in ("input", "output"):
            measured = [each["stages"][number][phase]["measured_s"] for each in runs]
            if stage[phase]["bound"] is None or None in measured:
                continue
            took = mean_of(measured)
            yield {**stage[phase], "application": name, "stage": stage["name"], "phase": phase, "clients": stage["clients"],
                   "measured_s": took, "errors": {key: stage[phase][key] / took - 1 for key in METHODS if took > 0}}


def bound_text(phase):
    more = f", concurrency ({phase['better_clients']} do more)" if phase["concurrency_bound"] else ""
    return f"{phase['operation']} {phase['bound']}{more}"


def table_four(phases):
    return to_markdown(["APPLICATION", "STAGE", "PHASE", "CLIENTS", "METADATA", "TRANSFER", "BOUND BY"],
                       [[p["application"], p["stage"], p["phase"], p["clients"], f"{p['metadata_share']:.1%}", f"{1 - p['metadata_share']:.1%}",
                         bound_text(p)] for p in phases])


def nearest(phase):
    """Of two that are alike neither is."""
    least = min(map(abs, phase["errors"].values()))
    as_near = [METHODS[key] for key, error in phase["errors"].items() if abs(error) <= least + 1e-9]
    return as_near[0] if len(as_near) == 1 else "-"


def table_five(phases):
    return to_markdown(["APPLICATION", "STAGE", "PHASE", "MEASURED S", "COARSE", "FINE", "SIMULATOR", "NEAREST"],
                       [[p["application"], p["stage"], p["phase"], f"{p['measured_s']:.4f}", *[f"{p['errors'][key]:+.0%}" for key in METHODS],
                         nearest(p)] for p in phases])


def summary_rows(phases):
    groups = [("all", phases), (f"of {SHORT_S * 1000:.0f} ms and more", [p for p in phases if p["measured_s"] >= SHORT_S])]
    groups += [(name, [p for p in phases if p["application"] == name]) for name in dict.fromkeys(p["application"] for p in phases)]
    groups += [(f"bound by {bound}", [p for p in phases if p.get("bound") == bound]) for bound in ("metadata", "throughput", "bandwidth")]
    for name, group in groups:
        if not group:
            continue
        beats = mean_of(abs(p["errors"]["simulated_s"]) < abs(p["errors"]["fine_s"]) for p in group)
        seconds = sum(p["measured_s"] for p in group)
        yield [name, len(group), f"{seconds:.2f}", *[f"{mean_of(abs(p['errors'][key]) for p in group):.0%}" for key in METHODS],
               *[f"{sum(p[key] for p in group) / seconds - 1:+.0%}" for key in METHODS],
               *[f"{mean_of(nearest(p) == method for p in group):.0%}" for method in METHODS.values()], f"{beats:.0%}"]


SUMMARY_TITLES = ["PHASES", "COUNT", "SECONDS", *[f"MEAN ERROR, {m.upper()}" for m in METHODS.values()],
                  *[f"SUM, {m.upper()}" for m in METHODS.values()], *[f"{m.upper()} NEAREST" for m in METHODS.values()],
                  "SIMULATOR BEATS FINE"]


def whole_of(name, each):
    """Rows of whole stages: what tasks computed, which all methods are told, and their input and output."""
    classified = {stage["name"]: stage for stage in each["runs"][0]["stages"]}
    for stage, took in each["stages"].items():
        own = classified[stage]
        measured = mean_of(took["measured_s"]) / own["clients"]
        computed = took["computed_s"] / own["clients"]
        told = {key: computed + sum(own[phase][key] for phase in ("input", "output")) for key in ("coarse_s", "fine_s")}
        told["simulated_s"] = took["simulated_s"] / own["clients"]
        yield {"application": name, "stage": stage, "measured_s": measured, "computed_s": computed, **told,
               "errors": {key: told[key] / measured - 1 for key in METHODS}}


def whole_table(rows):
    return to_markdown(["APPLICATION", "STAGE", "MEASURED S", "OF THAT COMPUTED", "COARSE", "FINE", "SIMULATOR", "NEAREST"],
                       [[r["application"], r["stage"], f"{r['measured_s']:.3f}", f"{r['computed_s']:.3f}",
                         *[f"{r['errors'][key]:+.0%}" for key in METHODS], nearest(r)] for r in rows])


def verdict(rows, what):
    if not rows:
        return f"No {what} to compare."
    beats = mean_of(abs(r["errors"]["simulated_s"]) < abs(r["errors"]["fine_s"]) for r in rows)
    errors = [abs(r["errors"]["simulated_s"]) for r in rows]
    error = mean_of(errors)
    return (f"Of {what} the simulator beats the fine model on {beats:.0%} (aim: {BEATS:.0%}, {'reached' if beats >= BEATS else 'missed'}), "
            f"with a mean error of {error:.0%} (aim: {AIM:.0%}, {'reached' if error <= AIM else 'missed'}; median {statistics.median(errors):.0%}).")


ABOVE_TITLES = ["APPLICATION", "STAGE", "RATE", "SIMULATED", "MEASURED AT MOST", "MOST TASKS AT ONCE", "READ FROM THE OWN HOST OR PAGES"]


def above_row(name, each):
    """Of what `mosa predict --bound` says of a stage."""
    unit, divisor = ("MB/s", 1e6) if each["unit"] == "bytes/s" else (each["unit"], 1)
    return [name, each["stage"], each["rate"], *[f"{three(each[key] / divisor)} {unit}" for key in ("simulated", "bound")],
            each["tasks_at_once"], f"{each['own_share']:.0%}" if each["own_share"] else "-"]


def application_tables(told):
    parts = []
    for number, titles in enumerate(PROFILE_TITLES):
        rows = [row for name, each in told.items() for row in profile_rows(name, each["profile"])[number]]
        parts += [f"### Table {number + 1}", to_markdown(titles, rows)]
    phases = [phase for name, each in told.items() for phase in phases_of(name, each["runs"]) if phase["errors"]]
    parts += ["### Table 4", table_four(phases), "### Table 5", table_five(phases), to_markdown(SUMMARY_TITLES, list(summary_rows(phases)))]
    counted = [p for p in phases if p["measured_s"] >= SHORT_S]
    if counted:
        parts.append(verdict(counted, f"phases of {SHORT_S * 1000:.0f} ms and more"))
    whole = [row for name, each in told.items() for row in whole_of(name, each)]
    parts += ["### Whole stages", whole_table(whole), to_markdown(["STAGES", *SUMMARY_TITLES[1:]], list(summary_rows(whole))),
              verdict(whole, "whole stages")]
    above = [above_row(name, each) for name, of_it in told.items() for each in of_it["bound"]["above"]]
    parts += ["### Simulated rates above the envelope", to_markdown(ABOVE_TITLES, above) if above else "None."]
    return parts


# ---- capacity

def capacity_tables(told):
    sizes = to_markdown(["SIZE", "100 % READ /S", "100 % WRITE /S", "F_RW", "WORST ERROR", "AT", "VERDICT"],
                        [[size_of(s["size_bytes"]), three(s["reads_per_second"]["median"]), three(s["writes_per_second"]["median"]),
                          f"{s['f_rw']:.2f}", f"{s.get('worst_error_percent', 0):.1f} %", f"{s.get('worst_read_percent', '-')} % reads",
                          s["verdict"]] for s in told["sizes"]])
    checks = to_markdown(["LOAD", "ESTIMATED /S", "MEASURED /S", "ERROR", "ALLOWED"],
                         [[f"`{c['load']}`", three(c["estimated_per_second"]["median"]), three(c["measured_per_second"]["median"]),
                           f"{c['error_percent']:.1f} %", f"{c['error_percent_max']:.0f} %"] for c in told["checks"]])
    good = sum(c["error_percent"] <= c["error_percent_max"] for c in told["checks"])
    return [sizes, checks, f"{good} of {len(told['checks'])} loads are within the paper's errors."]


def tables(out):
    """Of the parts that are there."""
    parts = []
    settings = read(out / "settings.json")
    if settings:
        parts.append(f"Build {settings['commit']}; {settings['hosts']} hosts of {settings['rate']} for the stores, {settings['app_hosts']} of "
                     f"{settings['app_rate']} for the applications, {settings['repeats']} runs of each.")
    for title, name, make in (("Stores", "stores", envelope_tables), ("The envelope that applications are held against", "mosa", envelope_tables),
                              ("Applications", "applications", application_tables), ("Capacity", "capacity.shown", capacity_tables)):
        found = read(out / f"{name}.json")
        if found:
            parts += [f"## {title}", *make(found)]
    return "\n\n".join(parts)
