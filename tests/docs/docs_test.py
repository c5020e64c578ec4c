"""Documentation that is true: what its pages show is run, and what is generated is up to date.

- Console blocks of docs/start and docs/guide: the lines that begin with '$ ' are commands, run in
  order by one shell for each page; the lines below are what they print. '...' alone on a line
  stands for any lines, within a line for any text; runs of blanks count as one.
- docs/reference/cli.md, the manual pages and the completions are what --help of the programs
  prints; --write writes them.
- The pages build without a warning, with every link and anchor (mkdocs build --strict).

Exit codes: 0 good, 1 a page is wrong, 2 wrong arguments, 77 there is nothing here to run pages on.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import completion
import manual
import program_help

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CLI_PAGE = "docs/reference/cli.md"
PAGE_LIMIT_S = 120
MARK = "--mosa-docs-end-of-command--"
CLI_INTRO = """# Commands

This page is what `mosa COMMAND --help` prints, for each command. Every command also takes `--json`.
"""


class Failed(Exception):
    pass


# ---- console blocks


def console_blocks(text):
    """(line number, lines) of each block."""
    blocks, inside = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if inside is None and line.strip() == "```console":
            inside = (number + 1, [])
        elif inside is not None and line.strip() == "```":
            blocks.append(inside)
            inside = None
        elif inside is not None:
            inside[1].append(line)
    if inside is not None:
        raise Failed(f"the console block of line {inside[0]} does not end")
    return blocks


def commands_of(block):
    """(line number, command, expected lines) of each command."""
    first, lines = block
    found = []
    for number, line in enumerate(lines, first):
        if line.startswith("$ "):
            found.append((number, line[2:], []))
        elif line.startswith("> ") and found and not found[-1][2]:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line[2:]}", [])
        elif not found:
            raise Failed(f"line {number}: a console block begins with a command")
        else:
            found[-1][2].append(line)
    return found


def matches(expected, printed):
    """Whether the printed lines are what is expected of them."""
    pattern = []
    for line in expected:
        if line.strip() == "...":
            pattern.append(r"(?:[^\n]*\n)*?")
        else:
            words = " ".join(line.split())
            pattern.append(re.escape(words).replace(re.escape("..."), r"[^\n]*") + r"\n")
    text = "".join(" ".join(line.split()) + "\n" for line in printed)
    return re.fullmatch("".join(pattern), text) is not None


def run_page(page, binaries):
    """Runs all console blocks of a page; returns how many commands there were."""
    steps = [step for block in console_blocks(page.read_text()) for step in commands_of(block)]
    if not steps:
        return 0
    script = "".join(f"{command}\necho; echo {MARK}\n" for _, command, _ in steps)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MOSA_")}
    environment["PATH"] = f"{binaries}:{environment['PATH']}"
    with tempfile.TemporaryDirectory(prefix="mosa-docs-") as directory:
        try:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=PAGE_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"").decode(errors="replace")
            raise Failed(f"not done after {PAGE_LIMIT_S} s; it printed:\n{said}") from late
    parts = done.stdout.split(f"{MARK}\n")
    for (number, command, expected), printed in zip(steps, parts):
        lines = printed.removesuffix("\n").splitlines()
        if not matches(expected, lines):
            raise Failed(
                f"line {number}: {command}\n--- the page shows\n"
                + "\n".join(expected)
                + "\n--- it prints\n"
                + "\n".join(lines)
            )
    if len(parts) <= len(steps):
        raise Failed(f"the shell ended after {len(parts) - 1} of {len(steps)} commands")
    return len(steps)


def in_a_world_of_its_own():
    """Runs this again where clusters of other tests are not seen, and leave nothing there."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        return None
    command = ["unshare", "--mount", "--net", "--propagation", "private", "--", "sh", "-c"]
    inner = 'mount -t tmpfs tmpfs /run && ip link set lo up && exec "$@"'
    again = [sys.executable, str(pathlib.Path(__file__).resolve()), *sys.argv[1:], "--inside"]
    return subprocess.run([*command, inner, "sh", *again], check=False).returncode


def check_pages(binaries, only):
    count, wrong = 0, []
    for page in sorted([*DOCS.glob("start/*.md"), *DOCS.glob("guide/*.md")]):
        if only not in str(page.relative_to(DOCS)):
            continue
        name = page.relative_to(ROOT)
        try:
            commands = run_page(page, binaries)
            count += commands
            print(f"{name}: {commands} commands", flush=True)
        except Failed as failure:
            wrong.append(str(name))
            print(f"{name}: {failure}", flush=True)
            subprocess.run(
                [f"{binaries}/mosa", "cluster", "down", "--discard"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
    print(f"{count} commands were run; {len(wrong)} pages are wrong")
    return wrong


# ---- what is generated


def cli_page(root):
    parts = [CLI_INTRO]
    for command in root.tree()[1:]:
        level = "##" if len(command.words) == 2 else "###"
        parts.append(f"\n{level} {command.title}\n\n```text\n{command.help}\n```\n")
    return "".join(parts)


def generated(binaries):
    """The text of each file, by its path, that is made of what the programs print."""
    roots = [program_help.read(binaries, program) for program in manual.SECTIONS]
    texts = {manual.file_of(root.title): manual.page(root) for root in roots}
    texts[CLI_PAGE] = cli_page(roots[0])
    texts[completion.BASH] = completion.bash(roots[0])
    texts[completion.ZSH] = completion.zsh(roots[0])
    return {ROOT / path: text for path, text in texts.items()}


def clashes_of(command):
    """Newer releases of CLI11 refuse an argument and an option of one name, and end the program."""
    options = {name for option in command.options for name in option.names}
    return [p.names[0] for p in command.positionals if f"--{p.names[0]}" in options]


def strange_outputs_of(command):
    """The option that says what a command writes has the same names everywhere."""
    names = [option.names for option in command.options]
    return [n for n in names if {"-o", "--out", "--output"} & set(n) and n != ("-o", "--output")]


def check_generated(binaries):
    wrong = []
    for program in manual.SECTIONS:
        for command in program_help.read(binaries, program).tree():
            for name in clashes_of(command):
                wrong.append(command.title)
                print(f"{command.title}: its argument '{name}' has the name of an option")
            for names in strange_outputs_of(command):
                wrong.append(command.title)
                print(f"{command.title}: its option {','.join(names)} is not called -o,--output")
    for path, text in generated(binaries).items():
        if not path.exists() or path.read_text() != text:
            wrong.append(str(path))
            print(f"{path.relative_to(ROOT)} is not what --help prints: run this with --write")
    return wrong


def check_site():
    if importlib.util.find_spec("mkdocs") is None:
        print("no mkdocs here (pip install mkdocs-material): the pages were not built")
        return []
    with tempfile.TemporaryDirectory(prefix="mosa-site-") as site:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    print("the site builds" if done.returncode == 0 else done.stdout)
    return [] if done.returncode == 0 else ["the site"]


# ---- itself


def check_itself():
    assert matches(["a ... c", "...", "d"], ["a  b c", "x", "y", "d"])
    assert matches(["a", "..."], ["a"])
    assert not matches(["a"], ["a", "b"])
    assert not matches(["a ... c"], ["a b"])
    block = console_blocks("```console\n$ x\n> y\nz\n$ w\n```\n")[0]
    assert commands_of(block) == [(2, "x\ny", ["z"]), (5, "w", [])]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="the directory of mosa and its daemons")
    parser.add_argument("--only", default="", help="pages with this in their name")
    parser.add_argument("--write", action="store_true", help="write what is generated")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    binaries = os.path.abspath(arguments.bin)
    for part in (sys.modules[__name__], program_help, manual, completion):
        part.check_itself()
    if arguments.write:
        for path, text in generated(binaries).items():
            path.write_text(text)
        return 0
    if arguments.inside:
        return 1 if check_pages(binaries, arguments.only) else 0
    wrong = check_generated(binaries) + check_site()
    code = in_a_world_of_its_own() if shutil.which("unshare") else None
    if code is None:
        print("no namespaces, or no /dev/fuse, here: the pages' commands were not run")
        return 1 if wrong else 77
    return 1 if wrong or code != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
