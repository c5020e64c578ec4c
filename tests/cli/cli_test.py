"""What `mosa` promises on its command line: bad input is one sentence and an exit code; `cluster up` and `down`
leave nothing behind, whatever happens in between.

    cli_test.py --binaries DIR CASE        CASE is a name below, for example inputs

Exit code 77: skipped, with the reason.
"""

import base64
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from cli_tool import (MOSA_HOSTS, Tool, answer_on_terminal, check, check_clean, down, name, processes, remember_bridges, run_case, up,
                      why_no_cluster)


def inputs(tool):
    """Each bad input: its exit code, one sentence that names it, and no trace."""
    with tempfile.NamedTemporaryFile() as plain_file, tempfile.TemporaryDirectory() as directory:
        words = f"{directory}/words.yaml"
        pathlib.Path(words).write_text("tasks: [{id: a, command: 'true'}]\n", encoding="utf-8")
        sets, future = f"{directory}/sets.jsonl", f"{directory}/future.json"
        pathlib.Path(sets).write_text('["/a", "/b"]\n["/a", 3]\n', encoding="utf-8")
        pathlib.Path(future).write_text('{"mosa_forecasts": 99, "mosa_platform": 99}\n', encoding="utf-8")
        rows = [
            (["cluster", "up", "--hosts", "0"], 2, "--hosts 0"),
            (["cluster", "up", "--hosts", "201"], 2, "--hosts 201"),
            (["cluster", "up", "--hosts", "many"], 2, "many"),
            (["cluster", "up", "--rate", "fast"], 2, "'fast'"),
            (["cluster", "up", "--rate", "200"], 2, "'200'"),
            (["cluster", "up", "--ram", "lots"], 2, "'lots'"),
            (["cluster", "up", "--ram", "1M"], 2, "16M"),
            (["cluster", "up", "--ram", "100000G"], 4, "lower --ram"),
            (["cluster", "up", "--name", "../x"], 2, "'../x'"),
            (["cluster", "up", "--chunk-size", "1000"], 2, "1000"),
            (["cluster", "up", "--default-placement", "far"], 2, "'far'"),
            (["cluster", "up", "--stripe-width", "-1"], 2, "-1"),
            (["cluster", "up", "--colour"], 2, "--colour"),
            (["cluster", "up", "--plain", "--rate", "1gbit"], 2, "--rate"),
            (["cluster", "down", "--name", "nosuch"], 3, "'nosuch'"),
            (["cluster", "status", "--name", "nosuch"], 3, "'nosuch'"),
            (["cluster", "exec", "--name", "nosuch", "h1", "--", "true"], 3, "'nosuch'"),
            (["cluster", "sideways"], 2, "sideways"),
            (["stat", "/no/such/file"], 3, "/no/such/file"),
            (["where", "/no/such/file"], 3, "/no/such/file"),
            (["where", plain_file.name], 3, "not a regular file on a Mosa mount"),
            (["where"], 2, "paths"),
            (["where", "--cost"], 2, "paths"),
            (["where", "--cost", "/no/such/file"], 2, "/no/such/file: not on a Mosa mount"),
            (["where", "--cost", "--from", "/no/such/sets"], 3, "/no/such/sets"),
            (["where", "--cost", "--from", sets], 2, "set 2 is not a JSON list of paths"),
            (["where", "--cost", "--chunks", "/a"], 2, "--chunks"),
            (["where", "--hosts", "h1", "/a"], 2, "--cost"),
            (["where", "--cost", "--in-store", "--name", "nosuch", "/a"], 3, "'nosuch'"),
            (["cluster", "up", "--forecasts", "/no/such/file"], 3, "/no/such/file"),
            (["cluster", "up", "--forecasts", plain_file.name], 2, plain_file.name),
            (["cluster", "up", "--forecasts", future], 2, "99"),
            (["forecast", "--platform", "/no/such/platform"], 3, "/no/such/platform"),
            (["forecast", "--platform", future], 2, "99"),
            (["run"], 2, "workflow"),
            (["run", "/no/such/workflow"], 3, "/no/such/workflow"),
            (["run", plain_file.name], 2, "the text is empty"),
            (["run", words, "--cluster", "nosuch"], 3, "'nosuch'"),
            (["run", words, "--system", "fast"], 2, "fast"),
            (["run", words, "--slots", "many"], 2, "many"),
            (["run", words, "--hosts", "a,b"], 2, "--hosts and --exec need --mount"),
            (["run", words, "--mount", "/no/such/mount"], 5, "/no/such/mount"),
            (["run", words, "--mount", "/tmp", "--workdir", "/tmp"], 2, "--workdir '/tmp' is outside the mount"),
            (["bench"], 2, "subcommand"),
            (["bench", "patterns", "--cluster", "nosuch"], 3, "'nosuch'"),
            (["bench", "patterns", "--mount", "/tmp", "--hosts", "a,a"], 2, "twice"),
            (["bench", "patterns", "--mount", "/tmp", "--scale", "0"], 2, "--scale 0: '0' is not a factor"),
            (["bench", "patterns", "--mount", "/tmp", "--width", "-1"], 2, "-1"),
            (["bench", "work", "read:x"], 2, "'read:x' has no content"),
            (["bench", "work", "read:x:0:8:/no/such/file"], 3, "/no/such/file"),
            (["secret", "create", plain_file.name], 3, "exists"),
            (["status", "--manager", "127.0.0.1:1"], 5, "127.0.0.1:1"),
            (["status", "--manager", "127.0.0.1:1", "--secret", "/no/such/secret"], 3, "/no/such/secret"),
            ([], 2, "subcommand"),
        ]
        for words, code, says in rows:
            done = tool.run(*words)
            line = done.stderr.strip()
            check(done.returncode == code, f"mosa {words}: exit code {done.returncode}, not {code}: {line}")
            check(says in line, f"mosa {words}: '{line}' does not say {says}")
            check("\n" not in line and line.startswith("mosa: "), f"mosa {words}: not one sentence: {line}")
            check(done.stdout == "" or words[0] == "where", f"mosa {words} wrote to standard output: {done.stdout}")
    check_clean(tool, "bad inputs")


def help_and_version(tool):
    for words in ([], ["cluster"], ["cluster", "up"], ["run"], ["bench", "patterns"], ["stat"], ["residence"], ["where"], ["hint", "set"], ["hint", "rule", "add"],
                  ["secret", "create"], ["node", "list"]):
        text = tool.good(*words, "--help")
        check("mosa " in text, f"the help of {words} has no example: {text}")
    text = tool.good("--help")
    groups = [line.rstrip(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    check(groups == ["Options", "Store", "Run", "Predict", "Observe", "Measure"], f"groups of commands: {groups}")
    check(len(text.splitlines()) < 60, f"the list of commands is long: {text}")
    for words, hidden, shown in (([], "identify-worker", "identify "), (["stage"], "worker", "check "), (["bench"], "work ", "patterns ")):
        text = tool.good(*words, "--help")
        check(f"\n  {hidden}" not in text and f"\n  {shown}" in text, f"the help of {words}: {text}")
    version = json.loads(tool.good("version", "--json"))
    line = f"mosa {version['version']} ({version['commit']})\n"
    check(re.fullmatch(r"mosa \d+\.\d+\.\d+ \(([0-9a-f]{12,}|unknown)\)\n", line), line)
    check(tool.good("version") == line, "the two forms of version differ")
    for program in ("mosa", "mosa-manager", "mosa-storage", "mosa-mount"):
        done = subprocess.run([str(tool.path.parent / program), "--version"], capture_output=True, text=True, timeout=10, check=False)
        check(done.returncode == 0 and done.stdout == line, f"{program} --version: {done}, not {line}")
    for words, code in ((["--help"], 0), (["up", "--help"], 0), (["down", "hosts", "-h"], 0), ([], 2), (["up"], 2)):
        done = subprocess.run([str(MOSA_HOSTS), *words], capture_output=True, text=True, timeout=10, check=False)
        text = done.stdout if code == 0 else done.stderr
        check(done.returncode == code and "mosa-hosts up HOSTFILE" in text and "--mount" in text, f"mosa-hosts {words}: {done}")


def secret(tool):
    with tempfile.TemporaryDirectory() as directory:
        secrets = pathlib.Path(directory) / "secrets"
        tool.good("secret", "create", str(secrets))
        check(secrets.stat().st_mode & 0o777 == 0o700, "others can list the secrets")
        names = {path.name for path in secrets.iterdir()}
        check(names == {"ca.pem", "manager.pem", "node.pem", "mount.pem", "admin.pem"}, f"{names}")
        for path in secrets.iterdir():
            check(path.stat().st_mode & 0o777 == 0o600, f"{path} can be read by others")
            text = path.read_text()
            check("BEGIN CERTIFICATE" in text and "PRIVATE KEY" in text, f"{path} lacks certificate or key")
        user = secrets / "user.pem"
        tool.good("secret", "issue", str(secrets), str(user), "--uid", "1000", "--days", "3")

        def shown(path):
            return json.loads(tool.good("secret", "show", str(path), "--json"))

        def bad(code, why, *words):
            done = tool.run("secret", *words)
            check(done.returncode == code and why in done.stderr, f"secret {words}: {done.returncode} {done.stderr}")

        check(shown(user)["for"] == "user of uid 1000", f"{shown(user)}")
        before, expires = shown(user)["issuer"], shown(user)["expires"]
        bad(3, "no rotation of the authority has begun", "rotate", "switch", str(secrets))
        tool.good("secret", "rotate", "begin", str(secrets))
        tool.good("secret", "rotate", "begin", str(secrets))
        check(len(shown(user)["trusts"]) == 2 and shown(user)["issuer"] == before, f"{shown(user)}")
        bad(3, "switch first", "rotate", "end", str(secrets))
        tool.good("secret", "rotate", "switch", str(secrets))
        check(shown(user)["issuer"] != before, "the user's secret is still the old authority's")
        check(shown(user)["expires"] == expires, "the user's secret was prolonged")
        bad(3, "end that rotation first", "rotate", "begin", str(secrets))
        tool.good("secret", "rotate", "end", str(secrets))
        tool.good("secret", "rotate", "end", str(secrets))
        check(shown(user)["trusts"] == [shown(user)["issuer"]], f"{shown(user)}")
        for words, code, why in (
            (["issue", str(secrets), f"{directory}/x"], 2, "--uid"),
            (["issue", str(secrets), f"{directory}/x", "--role", "king"], 2, "king"),
            (["issue", str(secrets), f"{directory}/x", "--role", "node", "--node", "a b"], 2, "a b"),
            (["issue", str(secrets), str(user), "--uid", "1"], 3, "exists"),
            (["rotate", "back", str(secrets)], 2, "back"),
            (["show", str(secrets / "ca.pem")], 2, "has no role"),
        ):
            bad(code, why, *words)


def dry_run(tool):
    plan = json.loads(tool.good("cluster", "up", "--dry-run", "--json", "--name", name("dry"), "--hosts", "3", "--ram",
                                "64M"))
    check([h["name"] for h in plan["hosts"]] == ["h1", "h2", "h3"], f"wrong hosts: {plan}")
    check_clean(tool, "a dry run")


def missing_program(tool):
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(tool.path, directory)
        alone = Tool(directory, tool.directory)
        done = alone.run("cluster", "up", "--name", name("alone"), "--ram", "64M")
        check(done.returncode == 3 and "mosa-manager" in done.stderr, f"{done.returncode}: {done.stderr}")
    check_clean(tool, "a missing program")


def up_down(tool):
    """What the two printed is true, the name is taken while the cluster is up, and nothing is left."""
    facts = up(tool, "a", *rate())
    for host in facts["hosts"]:
        text = tool.good("cluster", "exec", "--name", name("a"), host["name"], "--", "sh", "-c",
                         'echo "$MOSA_HOST" > "$MOSA_MOUNT/$MOSA_HOST"; pwd', cwd="/usr")
        check(text == "/usr\n", f"exec changed the directory to {text}")
    for host in facts["hosts"]:
        names = sorted(os.listdir(host["mount"]))
        check(names == ["h1", "h2"], f"{host['mount']} lists {names}")
        check(pathlib.Path(host["mount"], "h1").read_text(encoding="ascii") == "h1\n", "other bytes than were written")
    done = tool.run("cluster", "up", "--name", name("a"), "--ram", "64M")
    check(done.returncode == 3 and "already" in done.stderr, f"a name in use: {done.returncode} {done.stderr}")
    done = tool.run("cluster", "exec", "--name", name("a"), "h9", "--", "true")
    check(done.returncode == 3 and "'h9'" in done.stderr, f"no such host: {done.returncode} {done.stderr}")
    done = tool.run("cluster", "exec", "--name", name("a"), "h1", "--", "sh", "-c", "exit 9")
    check(done.returncode == 9, f"exec lost the exit code: {done.returncode}")
    state = pathlib.Path(facts["directory"])
    check(state.stat().st_mode & 0o777 == 0o700, "others can enter the cluster's directory")
    check((state / "secrets/node.pem").stat().st_mode & 0o777 == 0o600, "others can read the secret")
    down(tool, "a")
    check_clean(tool, "down")


def rate():
    return ["--rate", "1gbit"] if os.geteuid() == 0 else []


def views(tool):
    """status, stat, where, node list and lost agree on one file."""
    facts = up(tool, "v", "--default-placement", "local")
    manager = ["--name", name("v")]
    path = pathlib.Path(facts["hosts"][1]["mount"]) / "file"
    path.write_bytes(b"x" * 3_000_000)
    where = json.loads(tool.good("where", "--json", str(path)))
    check(where == [{"path": str(path), "nodes": ["h2"]}], f"where: {where}")
    stat = json.loads(tool.good("stat", "--json", str(path), *manager))
    check(stat["size_bytes"] == 3_000_000 and stat["location"] == ["h2"], f"stat: {stat}")
    check(stat["manager"]["path"] == "/file" and not stat["manager"]["lost"], f"stat: {stat}")
    mount = json.loads(tool.good("stat", "--json", str(path.parent), *manager))
    check(any("bytes" in key for key in mount["mount"]), f"stat of a mount: {mount}")
    nodes = json.loads(tool.good("node", "list", "--json", *manager))
    check([n["name"] for n in nodes] == ["h1", "h2"] and all(n["state"] == "live" for n in nodes), f"nodes: {nodes}")
    status = json.loads(tool.good("status", "--json", *manager))
    check(status["files"] == 1 and len(status["mounts"]) == 2, f"status: {status}")
    check(tool.good("lost", "--json", *manager) == "[]\n", "something is lost")
    hosts = json.loads(tool.good("cluster", "status", "--json", *manager))["hosts"]
    check(all(h["storage"]["running"] and h["mount"]["running"] for h in hosts), f"cluster status: {hosts}")
    for words in (["status"], ["node", "list"], ["lost"], ["cluster", "status"]):
        check(tool.good(*words, *manager).strip(), f"{words} printed nothing")
    down(tool, "v")
    check_clean(tool, "down")


PLATFORM = str(pathlib.Path(__file__).resolve().parent.parent / "predict" / "platform_guess.json")


def costs(tool):
    """where --cost names the host that has the bytes first, for sets in bulk; what cannot be said is said of each set."""
    with tempfile.TemporaryDirectory() as directory:
        forecasts = f"{directory}/forecasts.json"
        tool.good("forecast", "--platform", PLATFORM, "-o", forecasts)
        facts = up(tool, "c", "--default-placement", "local", "--forecasts", forecasts, hosts=3)
    manager = ["--name", name("c")]
    mounts = [pathlib.Path(host["mount"]) for host in facts["hosts"]]
    for host, bytes_count in ((0, 200_000), (1, 3_000_000), (2, 1_000_000)):
        (mounts[host] / f"f{host}").write_bytes(b"x" * bytes_count)
    paths = [str(mounts[0] / f"f{host}") for host in range(3)]
    one = json.loads(tool.good("where", "--cost", "--json", paths[1]))
    check([answer["paths"] for answer in one] == [[paths[1]]], f"cost of one: {one}")
    ranking = one[0]["hosts"]
    check(ranking[0]["host"] == "h2" and ranking[0]["local_bytes"] == 3_000_000, f"not h2 first: {ranking}")
    check({host["remote_bytes"] for host in ranking[1:]} == {3_000_000}, f"remote: {ranking}")
    check(0 < ranking[0]["seconds"] < ranking[1]["seconds"] == ranking[2]["seconds"], f"seconds: {ranking}")
    odd = os.fsencode(mounts[0]) + b"/odd\xff"
    with open(odd, "wb") as file:
        file.write(b"x")
    answer = json.loads(tool.good("where", "--cost", "--json", paths[0], os.fsdecode(odd)))[0]
    names = [base64.b64decode(path) for path in answer["paths_b64"]]
    check(names == [os.fsencode(paths[0]), odd] and "paths_b64" not in one[0], f"odd name: {answer}")
    table = [line.split() for line in tool.good("where", "--cost", *paths).splitlines()]
    check(table[0] == ["HOST", "SECONDS", "LOCAL", "REMOTE"], f"table: {table}")
    check([row[0] for row in table[1:]] == ["h2", "h3", "h1"], f"table: {table}")

    sets = [json.dumps(paths), paths[0], "[]", json.dumps([paths[2], "/tmp"]), json.dumps([paths[2] + ".none"])]
    done = tool.run("where", "--cost", "--json", "--from", "-", "--hosts", "h3,h1", input="\n".join(sets) + "\n")
    check(done.returncode == 2 and "/tmp: not on a mount of this cluster" in done.stderr, done.stderr)
    answers = json.loads(done.stdout)
    check([[host["host"] for host in answer.get("hosts", [])] for answer in answers] ==
          [["h3", "h1"], ["h1", "h3"], ["h3", "h1"], [], []], f"sets: {answers}")
    check("/f2.none" in answers[4]["error"], f"missing file: {answers[4]}")
    bulk = "\n".join([sets[0]] * 10_000) + "\n"
    begin = time.monotonic()
    done = json.loads(tool.good("where", "--cost", "--json", "--from", "-", input=bulk))
    seconds = time.monotonic() - begin
    check(len(done) == 10_000 and done[9_999] == done[0], f"bulk: {done[-1]}")
    check(seconds < 60, f"10,000 sets took {seconds:.1f} s")
    unknown = tool.run("where", "--cost", "--in-store", "/f0", "--hosts", "h9", *manager)
    check(unknown.returncode == 2 and "'h9' is not one of" in unknown.stderr, unknown.stderr)

    tool.good("hint", "rule", "add", str(mounts[0] / "all" / "*"), "pattern=broadcast")
    (mounts[0] / "all").mkdir()
    # Nodes were counted some tenths of a second ago.
    for _ in range(100):
        if "on 3 nodes" in tool.good("hint", "explain", str(mounts[0] / "all" / "short")):
            break
        time.sleep(0.1)
    # A close of the short one waits for as many copies as it is to have, not for those of a long one.
    (mounts[0] / "all" / "short").write_bytes(b"x" * 20_000)
    (mounts[0] / "all" / "shared").write_bytes(b"x" * 1_000_000)
    counts = json.loads(tool.good("stat", "--json", str(mounts[0]), *manager))["mount"]
    check(counts["closes_without_copies"] == 0, f"closes: {counts}")
    explained = tool.good("hint", "explain", str(mounts[0] / "all" / "shared"))
    check("predicted best for" in explained and "on 3 nodes" in explained, f"explain: {explained}")
    layout = json.loads(os.getxattr(mounts[0] / "all" / "shared", "user.mosa.layout"))
    check("predicted best for" in layout["auto"], f"layout: {layout}")
    down(tool, "c")
    up(tool, "c")
    none = tool.run("where", "--cost", "--in-store", "/f0", *manager)
    check(none.returncode == 3 and "--forecasts FORECASTS" in none.stderr, none.stderr)
    down(tool, "c")
    check_clean(tool, "down")


def errno_of_set(path, attribute, value):
    try:
        os.setxattr(path, attribute, value)
    except OSError as error:
        return error.errno
    return 0


def hints(tool):
    """Rules place files that two hosts make; explain says who said it; bad hints are one sentence and change nothing."""
    facts = up(tool, "t", hosts=3)
    first, second = (pathlib.Path(host["mount"]) for host in facts["hosts"][:2])
    manager = ["--name", name("t")]
    rule = json.loads(tool.good("hint", "rule", "add", "--json", f"{first}/parts/*.out", "pattern=reduce:merge"))
    check(rule == {"id": 1, "glob": "/parts/*.out"}, f"rule add: {rule}")
    tool.good("hint", "rule", "add", "/parts/local.out", "placement=local", "strict=1", *manager)
    (first / "parts").mkdir()
    paths = []
    for i, mount in enumerate((first, second) * 20):
        path = mount / "parts" / f"{i}.out"
        path.write_bytes(b"x" * 200_000)
        paths.append(str(path))
    where = json.loads(tool.good("where", "--json", "--from", "-", input="\n".join(paths) + "\n"))
    check([answer["path"] for answer in where] == paths, "where changed the order of the paths")
    anchors = {tuple(answer["nodes"]) for answer in where}
    check(len(anchors) == 1 and len(anchors.pop()) == 1, f"a group is on several nodes: {where}")
    in_store = json.loads(tool.good("where", "--json", "--in-store", "/parts/0.out", *manager))
    check(in_store[0]["nodes"] == where[0]["nodes"], f"in store: {in_store}")
    (second / "parts" / "local.out").write_bytes(b"x" * 200_000)
    check(tool.good("where", str(first / "parts" / "local.out")).split()[-2] == "h2", "strict local is not local")

    explained = json.loads(tool.good("hint", "explain", "--json", paths[0]))["hints"]
    new = json.loads(tool.good("hint", "explain", "--json", str(second / "parts" / "new.out")))
    check(not new["exists"] and new["hints"] == explained, f"explain: {new} is not {explained}")
    check(explained["pattern"] == {"value": "reduce:merge", "source": "rule", "origin": "/parts/*.out"}, explained)
    check(explained["placement"]["value"] == "collocate:merge", explained)
    check(tool.good("hint", "get", paths[0], "placement") == "collocate:merge\n", "get")
    done = tool.run("hint", "set", str(first), "lifetime=temporary", "stripe_width=2")
    check(done.returncode == 0 and "existing ones keep their hints: 0 files, 1 directory" in done.stderr, done.stderr)
    done = tool.run("hint", "set", str(first / "parts"), "strict=1")
    check(done.returncode == 0 and "existing ones keep their hints: 41 files, 0 directories" in done.stderr, done.stderr)
    (first / "empty").mkdir()
    check(not tool.run("hint", "set", str(first / "empty"), "strict=1").stderr, "nothing in an empty directory keeps its hints")
    check("lifetime=temporary" in tool.good("hint", "get", str(first)), "set or get of a directory")
    tool.good("hint", "set", "--in-store", "/", "lifetime=keep", *manager)
    check(tool.good("hint", "get", str(second), "lifetime") == "keep\n", "set in the store")

    rows = [
        (["hint", "set", paths[0], "placement=local"], 3, "has bytes already"),
        (["hint", "set", paths[0], "colour=blue"], 2, "colour=blue"),
        (["hint", "set", paths[0], "colour"], 2, "NAME=VALUE"),
        (["hint", "set", "--in-store", "/parts", "chunk_size=1000", *manager], 2, "a multiple of 4K"),
        (["hint", "rule", "add", "parts/*", "strict=1", *manager], 2, "must begin with '/'"),
        (["hint", "rule", "add", "/[", "strict=1", *manager], 2, "ends within a '['"),
        (["hint", "rule", "add", "/a", "replicas=10000", *manager], 2, "1 to 64, or auto"),
        (["hint", "rule", "add", "/x", *manager], 2, "no hint given: write NAME=VALUE"),
        (["hint", "set", paths[0]], 2, "no hint given: write NAME=VALUE"),
        (["hint", "rule", "remove", "99", *manager], 3, "there is no rule 99"),
        (["hint", "get", str(first / "none")], 3, "no such file"),
    ]
    for words, code, text in rows:
        done = tool.run(*words)
        check(done.returncode == code and text in done.stderr, f"mosa {words}: {done.returncode} {done.stderr}")
        check(done.stderr.count("\n") == 1, f"mosa {words} says more than one sentence: {done.stderr}")
    file = paths[0]
    check(errno_of_set(file, "user.mosa.location", b"h1") == errno.EPERM, "a read-only attribute was set")
    check(errno_of_set(file, "user.mosa.placement", b"collocate:a b") == errno.EINVAL, "a group with a space was taken")
    check(errno_of_set(file, "user.DP", b"local") == errno.ENOTEMPTY, "an alias came too late, and was taken")
    check(errno_of_set(file, "user.DP", b"collocation merge") == 0, "the effective value was refused")
    check(os.getxattr(file, "user.DP") == b"collocation merge", "alias")
    check(not [x for x in os.listxattr(file) if "mosa" in x], "hints are listed")

    rules = json.loads(tool.good("hint", "rule", "list", "--json", *manager))
    check([r["glob"] for r in rules] == ["/parts/*.out", "/parts/local.out"], f"rules: {rules}")
    tool.good("hint", "rule", "remove", "/parts/*.out", *manager)
    tool.good("hint", "rule", "remove", "2", *manager)
    check(json.loads(tool.good("hint", "rule", "list", "--json", *manager)) == [], "rules are left")
    down(tool, "t")
    check_clean(tool, "down")


def interrupted(tool):
    """Ctrl-C and TERM at many moments of `up`: everything is gone when it has ended."""
    begin = time.monotonic()
    up(tool, "i")
    whole = time.monotonic() - begin
    down(tool, "i")
    stopped = 0
    for step in range(10):
        for number in (signal.SIGINT, signal.SIGTERM):
            starting = tool.start("cluster", "up", "--name", name("i"), "--hosts", "2", "--ram", "64M")
            time.sleep(whole * step / 10)
            remember_bridges(tool)
            starting.send_signal(number)
            _, text = starting.communicate(timeout=60)
            if starting.returncode == 0:
                down(tool, "i")
            elif starting.returncode != -number:  # Else it had not yet said what it does with signals.
                check(starting.returncode == 128 + number, f"exit code {starting.returncode}: {text}")
                stopped += 1
            check_clean(tool, f"signal {number} after {step}/10 of up")
    check(stopped >= 5, f"only {stopped} of 20 signals met a cluster that was starting")


def down_while_starting(tool):
    starting = tool.start("cluster", "up", "--name", name("s"), "--hosts", "4", "--ram", "64M")
    state = pathlib.Path(tool.directory) / name("s") / "state.json"
    limit = time.monotonic() + 20
    while not state.exists() and time.monotonic() < limit:
        time.sleep(0.001)
    remember_bridges(tool)
    down(tool, "s")
    starting.communicate(timeout=60)
    check(starting.returncode == 128 + signal.SIGTERM, f"up ended with {starting.returncode}")
    check_clean(tool, "down during up")


def killed_starter(tool):
    """kill -9 of `up` half way: `down` finds what there is."""
    starting = tool.start("cluster", "up", "--name", name("k"), "--hosts", "4", "--ram", "64M")
    state = pathlib.Path(tool.directory) / name("k") / "state.json"
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        if state.exists() and len(json.loads(state.read_text(encoding="utf-8"))["daemons"]) >= 3:
            break
        time.sleep(0.001)
    starting.kill()
    starting.wait()
    remember_bridges(tool)
    down(tool, "k")
    check_clean(tool, "down after kill -9 of up")


def killed_daemons(tool):
    """kill -9 of each kind of daemon, and of all: status says so, down removes all."""
    for kinds in (["mount"], ["storage"], ["manager"], ["manager", "storage", "mount"]):
        up(tool, "d")
        state = pathlib.Path(tool.directory) / name("d") / "state.json"
        for daemon in json.loads(state.read_text(encoding="utf-8"))["daemons"]:
            if daemon["kind"] in kinds:
                os.kill(daemon["process"]["pid"], signal.SIGKILL)
        time.sleep(0.1)
        done = tool.run("cluster", "status", "--name", name("d"))
        check(done.returncode == 5 and "not running" in done.stderr, f"{kinds}: {done.returncode} {done.stderr}")
        if "manager" in kinds:
            done = tool.run("cluster", "down", "--name", name("d"))
            check(done.returncode == 3 and "its manager has ended" in done.stderr, f"{kinds}: {done.returncode} {done.stderr}")
            check("mosa cluster restart --name" in done.stderr, done.stderr)
            tool.good("cluster", "down", "--discard", "--name", name("d"))
        else:
            down(tool, "d")
        check_clean(tool, f"kill -9 of {kinds}")


def restarted_manager(tool):
    """Also without namespaces, where its address is one that was free."""
    for flags in ([], ["--plain"]):
        facts = up(tool, "a", *flags)
        file = pathlib.Path(facts["hosts"][0]["mount"]) / "file"
        file.write_bytes(b"r" * 1_000_000)
        done = tool.run("cluster", "restart", "--name", name("a"))
        check(done.returncode == 3 and " is already running, as process " in done.stderr, f"{done.returncode} {done.stderr}")
        state = pathlib.Path(tool.directory) / name("a") / "state.json"
        daemons = json.loads(state.read_text(encoding="utf-8"))["daemons"]
        os.kill(next(daemon["process"]["pid"] for daemon in daemons if daemon["kind"] == "manager"), signal.SIGKILL)
        time.sleep(0.1)
        done = tool.run("cluster", "status", "--name", name("a"))
        again = f"'mosa cluster restart --name {name('a')}' restarts the manager"
        check(done.returncode == 5 and again in done.stderr, f"{done.returncode} {done.stderr}")
        done = tool.run("status", "--name", name("a"))
        says = f"the manager of cluster '{name('a')}' is not running: 'mosa cluster restart"
        check(done.returncode == 5 and says in done.stderr, f"{done.returncode} {done.stderr}")
        tool.good("cluster", "restart", "--name", name("a"))
        tool.good("cluster", "status", "--name", name("a"))
        other = pathlib.Path(facts["hosts"][1]["mount"]) / "file"
        check(other.read_bytes() == b"r" * 1_000_000, "other bytes than before")
        down(tool, "a")
        check_clean(tool, f"restart of the manager, {flags}")


def reused_pid(tool):
    """A process that has got a dead daemon's number is left alone."""
    up(tool, "p")
    stranger = subprocess.Popen(["sleep", "60"])
    state = pathlib.Path(tool.directory) / name("p") / "state.json"
    facts = json.loads(state.read_text(encoding="utf-8"))
    mount = next(d for d in facts["daemons"] if d["kind"] == "mount")
    os.kill(mount["process"]["pid"], signal.SIGKILL)
    mount["process"]["pid"] = stranger.pid
    state.write_text(json.dumps(facts), encoding="utf-8")
    down(tool, "p")
    check(stranger.poll() is None, "down ended a process that was not the cluster's")
    stranger.kill()
    stranger.wait()
    check_clean(tool, "down")


def busy_mount(tool):
    """A program that sits in a mount, and one that runs inside a host, do not keep down from removing all."""
    facts = up(tool, "b")
    outside = subprocess.Popen(["sleep", "60"], cwd=facts["hosts"][0]["mount"])
    inside = tool.start("cluster", "exec", "--name", name("b"), "h2", "--", "sleep", "61")
    time.sleep(0.2)
    down(tool, "b")
    check(outside.poll() is None, "down ended a program outside the cluster")
    outside.kill()
    outside.wait()
    if facts["namespaces"]:
        check(inside.wait(timeout=5) != 0, "a program inside a host outlived its cluster")
    inside.kill()
    inside.communicate()
    check_clean(tool, "down")


def side_by_side(tool):
    """Two clusters at once are two stores, and ending one does not touch the other."""
    first, second = up(tool, "x"), up(tool, "y")
    one = pathlib.Path(first["hosts"][0]["mount"]) / "file"
    two = pathlib.Path(second["hosts"][0]["mount"]) / "file"
    one.write_text("one", encoding="ascii")
    check(not two.exists(), "one cluster shows the other's file")
    two.write_text("two", encoding="ascii")
    down(tool, "x")
    other = pathlib.Path(second["hosts"][1]["mount"]) / "file"
    check(other.read_text(encoding="ascii") == "two", "ending the first cluster harmed the second")
    tool.good("cluster", "status", "--name", name("y"))
    down(tool, "y")
    check_clean(tool, "both are down")


def simultaneous(tool):
    """Starts at the same instant get networks of their own, whatever directories they keep their clusters in."""
    directories = [pathlib.Path(tool.directory) / f"dir{i}" for i in range(3)]
    starts = [tool.start("cluster", "up", "--dir", str(directory), "--name", name(f"s{i}"), "--hosts", "1", "--ram",
                         "64M") for i, directory in enumerate(directories)]
    try:
        said = [start.communicate(timeout=100)[1] for start in starts]
        codes = [start.returncode for start in starts]
        check(codes == [0, 0, 0], f"exit codes {codes}: {said}")
    finally:
        for i, directory in enumerate(directories):
            tool.run("cluster", "down", "--dir", str(directory), "--name", name(f"s{i}"))
            if directory.exists():
                directory.rmdir()
    check_clean(tool, "all are down")


def plain(tool):
    """Without namespaces: the same commands, loopback processes."""
    facts = up(tool, "n", "--plain")
    check(not facts["namespaces"], "--plain made namespaces")
    (pathlib.Path(facts["hosts"][0]["mount"]) / "file").write_bytes(b"y" * 1_000_000)
    other = pathlib.Path(facts["hosts"][1]["mount"]) / "file"
    check(other.read_bytes() == b"y" * 1_000_000, "other bytes than were written")
    check("lifetime=none\n" in tool.good("hint", "get", str(other)), "what nobody wants kept is said to be")
    code, said = answer_on_terminal(tool, b"n\n", "cluster", "down", "--name", name("n"))
    check(code == 5 and "End cluster" in said and "the answer was not y" in said, f"a refused question: {code} {said}")
    check(other.read_bytes() == b"y" * 1_000_000, "the cluster ended although the answer was no")
    for words in (["stage", "check"], ["cluster", "down"]):
        done = tool.run(*words, "--name", name("n"))
        check(done.returncode == 0 and "No file was marked to be kept: 1 file, " in done.stderr, f"{words}: {done.returncode} {done.stderr}")
    check_clean(tool, "down of plain processes")
    done = tool.run("cluster", "up", "--name", name("n"), "--hosts", "1", "--ram", "64M", "--plain")
    check(done.returncode == 0 and f"export MOSA_CLUSTER={name('n')} MOSA_CLUSTER_DIR={tool.directory}\n" in done.stderr, done.stderr)
    done = tool.run("cluster", "status", "--name", "nosuch")
    check(f"choose {name('n')} with --name" in done.stderr, f"other clusters are not named: {done.stderr}")
    (pathlib.Path(tool.directory) / name("n") / "h1/mount/file").write_bytes(b"z")
    code, said = answer_on_terminal(tool, b"y\n", "cluster", "down", "--name", name("n"))
    check(code == 0 and "1 file, 1 B, ends with the store" in said, f"a question answered with y: {code} {said}")
    facts = up(tool, "n", "--plain")
    (pathlib.Path(facts["hosts"][0]["mount"]) / "file").write_bytes(b"z")
    code, said = answer_on_terminal(tool, None, "cluster", "down", "--name", name("n"))
    check(code != 0 and "answer was" not in said and processes(tool.directory), f"an interrupted question: {code} {said}")
    code, said = answer_on_terminal(tool, b"", "cluster", "down", "--yes", "--name", name("n"))
    check(code == 0 and "[y/N]" not in said, f"--yes asks: {code} {said}")


CASES = [inputs, help_and_version, secret, dry_run, missing_program, up_down, views, costs, hints, interrupted, down_while_starting,
         killed_starter, killed_daemons, restarted_manager, reused_pid, busy_mount, side_by_side, simultaneous, plain]
WITHOUT_CLUSTER = [inputs, help_and_version, secret, dry_run, missing_program]


def why_not(case):
    return None if case in WITHOUT_CLUSTER else why_no_cluster()


if __name__ == "__main__":
    sys.exit(run_case(CASES, why_not))
