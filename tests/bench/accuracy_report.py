"""Tables of what accuracy.py has kept: a row for each cell, and errors by groups of cells."""

from accuracy_cells import Cell

MOST, LINKS = 0.08, 0.02
LINK_LIMITED = 0.5  # The busiest link is busy for more than this share of the run.

TITLES = ["PATTERN", "SIZE", "SYSTEM", "HOSTS", "RATE", "PREDICTED S", "MEASURED S", "RUNS", "ERROR", "IN 90 %", "LINK BUSY",
          "STAGES", "MB MOVED P/M", "BYTES", "WORST LINK", "KJ P/M", "ENERGY", "KJ ABOVE IDLE P/M"]
SUMMARY = ["CELLS", "COUNT", "MEAN ERROR", "BIAS", "<= 8 %", "WORST", "IN 90 %", "BYTES <= 2 %", "LINKS <= 2 %",
           "WORST LINK", "ENERGY", "WORST ENERGY", "UNDECIDED"]


def mean_of(values):
    values = list(values)
    return sum(values) / len(values)


def known(entries, key):
    """Of those that have it: another store's daemons cannot be asked, and cells of before have no energy."""
    return [abs(entry[key]) for entry in entries if entry.get(key) is not None]


def share(values, most):
    return f"{mean_of(value <= most for value in values):.0%}" if values else "-"


def percent(value, form="+.1%"):
    return "-" if value is None else format(value, form)


def place_of(cell):
    """The links and the store, for people."""
    rate = "no limit" if cell.rate == "none" else cell.rate
    return rate if cell.store == "mosa" else f"{rate}, {cell.store}"


def kilojoules(joules):
    return " / ".join(f"{joules[k] / 1e3:.3f}" for k in ("predicted", "measured")) if joules else "-"


def row_of(entry):
    cell = Cell(**entry["cell"])
    half = entry["half_width_s"]
    stages = ", ".join(f"{s['stage']} {s['error']:+.0%}" for s in entry["stages"])
    joules, above_idle = entry.get("joules"), entry.get("joules_above_idle")
    return [cell.pattern, f"{cell.size} x{cell.scale:g}", cell.system, cell.hosts, place_of(cell),
            f"{entry['predicted_s']:.3f}", f"{entry['measured_s']:.3f} ±{half if half is None else format(half, '.3f')}",
            f"{entry['runs']}{'' if entry['settled'] else '?'}", f"{entry['error']:+.1%}",
            "yes" if entry["inside"] else "no", percent(entry["link_busy"], ".0%"), stages,
            " / ".join(f"{entry['network_bytes'][k] / 1e6:.1f}" for k in ("predicted", "measured")),
            percent(entry["network_error"]), percent(entry["links_error"]),
            kilojoules(joules), percent(entry.get("energy_error")), kilojoules(above_idle)]


def groups_of(entries):
    limited = [e for e in entries if (e["link_busy"] or 0) >= LINK_LIMITED]
    yield "all", entries
    yield "links are the limit", limited
    yield "others", [e for e in entries if e not in limited]
    for key in ("size", "hosts", "pattern", "system", "store"):
        values = sorted({e["cell"].get(key, "mosa") for e in entries}, key=lambda value: (len(str(value)), str(value)))
        for value in values if key != "store" or values != ["mosa"] else []:
            yield f"{key} {value}", [e for e in entries if e["cell"].get(key, "mosa") == value]


def summary(entries):
    lines = []
    for name, group in (each for each in groups_of(entries) if each[1]):
        errors = sorted(abs(e["error"]) for e in group)
        links, network, energy = (known(group, key) for key in ("links_error", "network_error", "energy_error"))
        lines.append([name, len(group), f"{mean_of(errors):.1%}", f"{mean_of(e['error'] for e in group):+.1%}",
                      share(errors, MOST), f"{errors[-1]:.1%}", f"{mean_of(e['inside'] for e in group):.0%}",
                      share(network, LINKS), share(links, LINKS), percent(max(links, default=None), ".1%"),
                      percent(mean_of(energy) if energy else None, ".1%"), percent(max(energy, default=None), ".1%"),
                      sum(not e["settled"] for e in group)])
    return lines


def order_of(entries):
    """One sentence: of two systems of one workload whose measured intervals are apart, is the faster one predicted so?"""
    right, wrong = 0, []
    for number, one in enumerate(entries):
        for other in entries[number + 1:]:
            same = Cell(**one["cell"])._replace(system="") == Cell(**other["cell"])._replace(system="")
            apart = abs(one["measured_s"] - other["measured_s"])
            if not same or apart <= (one["half_width_s"] or 0) + (other["half_width_s"] or 0):
                continue
            if (one["measured_s"] < other["measured_s"]) == (one["predicted_s"] < other["predicted_s"]):
                right += 1
            else:
                cell = Cell(**one["cell"])
                wrong.append(f"{cell.pattern} {cell.size} on {cell.hosts}, {cell.system} and {other['cell']['system']}")
    told = f"Order: {right} of {right + len(wrong)} pairs of systems whose measured intervals are apart are predicted so"
    return told + (f"; not {'; '.join(wrong)}" if wrong else "")


def to_markdown(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])
