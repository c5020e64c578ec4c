"""The examples for Prometheus and Grafana fit the daemons: promtool accepts the configuration, the
alerts and their tests; each alert has a text, a page, a test and a row in the documentation; and
all metrics, labels and values that alerts and dashboard ask for are in what the daemons of a small
cluster serve.

    monitoring_test.py --bin DIRECTORY

Exit code 77: everything that needs no cluster is right, and the rest is skipped, with the reason.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "netns"))

import cluster  # noqa: E402
import prometheus_test  # noqa: E402
from cluster import check, wait_until  # noqa: E402

SCRAPE = ROOT / "deploy" / "prometheus" / "scrape.yml"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
ALERTS_TEST = ROOT / "deploy" / "prometheus" / "alerts_test.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "mosa.json"
GUIDE = ROOT / "docs" / "guide" / "observing.md"

# What no daemon exports: labels that scrape.yml gives to every series, and those of ALERTS.
GIVEN_LABELS = {"job", "instance", "host", "cluster"}
ALERT_LABELS = {"alertname", "alertstate", "severity"}
# What Grafana puts into an expression: the choice "All", and a range.
CHOICES = {"cluster": ".*", "host": ".*", "class": ".*", "__rate_interval": "5m"}

VARIABLE = re.compile(r"\$(\w+)")
METRIC = re.compile(r"\bmosa_[a-z0-9_]+")
SELECTOR = re.compile(r"\b(mosa_[a-z0-9_]+)\s*\{([^{}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
JOB = re.compile(r'\bjob\s*=~?\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^()]*)\)")
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


# ---- the files by themselves


def has_promtool():
    return shutil.which("promtool") is not None


def promtool(*words):
    done = subprocess.run(
        ["promtool", *map(str, words)], capture_output=True, text=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).strip()
    check(done.returncode == 0, f"promtool {' '.join(map(str, words))}: {said[-4000:]}")


def alert_rules():
    """The text of each alert's rule, by its name."""
    parts = re.split(r"^ +- alert: (\w+)\n", ALERTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def check_alert(name, rule, tested, guide):
    severity = re.search(r"^ +labels: \{severity: (critical|warning|info)\}$", rule, re.MULTILINE)
    check(severity, f"alert {name} has no severity of critical, warning and info")
    for key in ("summary", "description"):
        check(re.search(rf"^ +{key}: .+$", rule, re.MULTILINE), f"alert {name} has no {key}")
    check("http" not in rule, f"alert {name} has a link")
    page = re.search(r'^ +page: (docs/\S+\.md), "(.+)"$', rule, re.MULTILINE)
    check(page, f"alert {name} names no page of the documentation with its section")
    path, section = page.groups()
    check((ROOT / path).is_file(), f"alert {name} names {path}, which does not exist")
    text = (ROOT / path).read_text(encoding="utf-8")
    check(
        re.search(rf"^#+ {re.escape(section)}$", text, re.MULTILINE), f"{path} has no '{section}'"
    )
    outcomes = {quiet == " []" for alert, quiet in tested if alert == name}
    check(outcomes == {True, False}, f"no test has alert {name} both fire and be silent")
    check(f"| `{name}` | {severity.group(1)} |" in guide, f"{GUIDE.name} has no row for {name}")


def check_alerts():
    rules = alert_rules()
    check(rules, f"{ALERTS} has no alert")
    tests = ALERTS_TEST.read_text(encoding="utf-8")
    tested = re.findall(r"alertname: (\w+)\n +exp_alerts:( \[\])?", tests)
    guide = GUIDE.read_text(encoding="utf-8")
    for name, rule in rules.items():
        check_alert(name, rule, tested, guide)
    for name in {alert for alert, _ in tested} | set(re.findall(r"^\| `(Mosa\w+)` ", guide, re.M)):
        check(name in rules, f"there is no alert {name}")
    return len(rules)


def read_dashboard():
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def panels_of(part):
    for panel in part.get("panels", []):
        yield panel
        yield from panels_of(panel)


def queries(dashboard):
    """(panel's title, expression), one for each query."""
    return [
        (panel["title"], target["expr"])
        for panel in panels_of(dashboard)
        for target in panel.get("targets", [])
    ]


def chosen(expression):
    """An expression as Grafana sends it."""
    for variable in VARIABLE.findall(expression):
        check(variable in CHOICES, f"there is no variable '{variable}': {expression}")
    return VARIABLE.sub(lambda found: CHOICES[found.group(1)], expression)


def check_dashboard(dashboard):
    check(dashboard["schemaVersion"] >= 39, f"schema {dashboard['schemaVersion']}")
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}
    check(variables["datasource"]["type"] == "datasource", "the data source cannot be chosen")
    check("host" in variables, "hosts cannot be chosen")
    panels = list(panels_of(dashboard))
    ids = [panel["id"] for panel in panels]
    check(len(ids) == len(set(ids)), f"two panels have one id: {sorted(ids)}")
    places = set()
    for panel in panels:
        grid = panel["gridPos"]
        for x in range(grid["x"], grid["x"] + grid["w"]):
            for y in range(grid["y"], grid["y"] + grid["h"]):
                check(x < 24 and (x, y) not in places, f"'{panel['title']}' lies on another panel")
                places.add((x, y))
        if panel["type"] == "row":
            continue
        check(panel["targets"], f"'{panel['title']}' asks for nothing")
        for part in (panel, *panel["targets"]):
            uid = part["datasource"]["uid"]
            check(uid == "${datasource}", f"'{panel['title']}' has the data source {uid}")
    return len(queries(dashboard))


def check_syntax(dashboard, directory):
    """Each expression of the dashboard as a rule, which promtool parses."""
    rules = [
        {"record": f"dashboard:query_{number}", "expr": chosen(expression)}
        for number, (_, expression) in enumerate(queries(dashboard))
    ]
    path = pathlib.Path(directory) / "dashboard.yml"
    path.write_text(
        json.dumps({"groups": [{"name": "dashboard", "rules": rules}]})
    )  # JSON is YAML.
    promtool("check", "rules", path)


def check_files():
    dashboard = read_dashboard()
    count = check_alerts()
    asked = check_dashboard(dashboard)
    print(f"  {count} alerts have texts, pages and tests; the dashboard has {asked} queries")
    if not has_promtool():
        print(
            "  skipped: there is no 'promtool' here for rules and expressions: "
            "apt-get install --no-install-recommends prometheus"
        )
        return
    promtool("check", "config", SCRAPE)
    promtool("check", "rules", ALERTS)
    promtool("test", "rules", ALERTS_TEST)
    with tempfile.TemporaryDirectory() as directory:
        check_syntax(dashboard, directory)
    print("  promtool accepts configuration, rules, their tests and the dashboard's expressions")


# ---- against what daemons serve


class Served:
    """What all daemons serve, each text with the labels that Prometheus adds."""

    def __init__(self):
        self.series = {}  # Name of the sample -> the labels of each.
        self.inputs = [
            {
                "series": 'ALERTS{alertname="MosaSome",alertstate="firing",severity="info"}',
                "values": "1x60",
            }
        ]

    def add(self, kind, address, text):
        host = address.rpartition(":")[0]
        given = f'job="mosa-{kind}",instance="{address}",host="{host}",cluster="mosa"'
        self.inputs.append({"series": f"up{{{given}}}", "values": "1x60"})
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            found = SAMPLE.fullmatch(line)
            check(found, f"{kind} serves '{line}'")
            name, labels, value = found.groups()
            self.series.setdefault(name, []).append(dict(LABEL.findall(labels or "")))
            # A histogram's samples have longer names, and all of them grow.
            grows = kinds.get(name) != "gauge"
            self.inputs.append(
                {
                    "series": f"{name}{{{f'{labels},' if labels else ''}{given}}}",
                    "values": f"0+{value}x60" if grows else f"{value}x60",
                }
            )

    def labels(self, name):
        return {label for labels in self.series[name] for label in labels} | GIVEN_LABELS

    def has(self, name, label, operator, value):
        if label in GIVEN_LABELS or operator.startswith("!"):
            return True
        there = [labels.get(label, "") for labels in self.series[name]]
        return any(re.fullmatch(value, one) if operator == "=~" else value == one for one in there)


def check_names(where, text, served, with_values=True):
    """The text may have other things in it than expressions."""
    for name in METRIC.findall(text):
        check(name in served.series, f"{where} asks for {name}, which no daemon serves")
    for name, matchers in SELECTOR.findall(text):
        for label, operator, value in MATCHER.findall(matchers):
            check(label in served.labels(name), f"{where}: {name} has no label '{label}'")
            found = not with_values or served.has(name, label, operator, value)
            check(found, f"{where}: no {name} has {label}{operator}'{value}'")
    jobs = re.findall(r"job_name: (\S+)$", SCRAPE.read_text(encoding="utf-8"), re.MULTILINE)
    for asked in JOB.findall(text):
        check(any(re.fullmatch(asked, job) for job in jobs), f"{where}: there is no job '{asked}'")
    known = GIVEN_LABELS | ALERT_LABELS | {"le", "class", "peer", "limit"}
    for labels in GROUPING.findall(text):
        for label in filter(None, re.split(r"[\s,]+", labels)):
            check(label in known, f"{where}: there is no label '{label}'")


def check_bounds(served):
    """Alerts that compare quantiles do so at bounds of buckets, where these are exact."""
    bounds = {
        float(labels["le"])
        for name, all_labels in served.series.items()
        if name.endswith("_request_seconds_bucket")
        for labels in all_labels
    }
    compared = re.findall(r"\)\) > ([0-9.]+)$", ALERTS.read_text(encoding="utf-8"), re.MULTILINE)
    check(compared, "no alert compares a quantile")
    for bound in compared:
        check(float(bound) in bounds, f"{bound} s is not a bound of the buckets: {sorted(bounds)}")


def check_legends(dashboard, served):
    known = GIVEN_LABELS | {
        label for all_ in served.series.values() for one in all_ for label in one
    }
    for panel in panels_of(dashboard):
        for target in panel.get("targets", []):
            for label in re.findall(r"\{\{\s*(\w+)\s*\}\}", target["legendFormat"]):
                check(label in known, f"'{panel['title']}': there is no label '{label}'")


def check_all_names(dashboard, served):
    check_names(ALERTS.name, ALERTS.read_text(encoding="utf-8"), served)
    check_names(ALERTS_TEST.name, ALERTS_TEST.read_text(encoding="utf-8"), served, False)
    for title, expression in queries(dashboard):
        check_names(f"'{title}'", chosen(expression), served)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            text = chosen(variable["query"]["query"])
            check_names(f"variable '{variable['name']}'", text, served)
    check_bounds(served)
    check_legends(dashboard, served)


def check_answers(dashboard, served):
    """Each expression of the dashboard finds something in what was served, as if for 15 minutes."""
    tests = []
    for _, expression in queries(dashboard):
        # What is shown only if it has happened.
        always = chosen(expression).removesuffix(" > 0")
        tests.append(
            {
                "expr": f"clamp_max(count({always}), 1)",
                "eval_time": "10m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            }
        )
    one = {"interval": "15s", "input_series": served.inputs, "promql_expr_test": tests}
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "answers.yml"
        path.write_text(json.dumps({"evaluation_interval": "15s", "tests": [one]}))
        promtool("test", "rules", path)


def check_served(served):
    dashboard = read_dashboard()
    check_all_names(dashboard, served)
    print(
        f"  alerts and dashboard ask for nothing but what daemons serve: {len(served.series)} names"
    )
    if has_promtool():
        check_answers(dashboard, served)
        print("  each query of the dashboard has an answer")


def fetch(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return answer.read().decode("utf-8")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store:
        daemons = [("manager", prometheus_test.serve_metrics(store, "manager", "h0"))]
        for kind in ("storage", "mount"):
            for host in store.hosts:
                daemons.append((kind, prometheus_test.serve_metrics(store, kind, host)))
        prometheus_test.work(store)
        manager = daemons[0][1]
        wait_until(
            lambda: 'limit="names of user 0"' in fetch(manager), 30, "the manager shows its limits"
        )
        served = Served()
        for kind, address in daemons:
            served.add(kind, address, fetch(address))
    check_served(served)


if __name__ == "__main__":
    try:
        check_files()
    except cluster.Failed as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
    cluster.main(test, limit_s=120, description=__doc__)
