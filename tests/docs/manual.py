"""Manual pages of what the programs' --help prints."""

import itertools
import re

import program_help

# Where systemd's units find the options of each daemon.
CONFIGURATION = {
    "mosa-manager": "/etc/mosa/manager.conf",
    "mosa-storage": "/etc/mosa/storage.conf",
    "mosa-mount": "/etc/mosa/mount.conf",
}
SECTIONS = {"mosa": 1, "mosa-manager": 8, "mosa-storage": 8, "mosa-mount": 8}
SHARED = "OPTIONS OF SEVERAL COMMANDS"


def escape(text):
    """What troff prints as this text, wherever on a line it stands."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + text if text.startswith(".") else text


def is_literal(line):
    """Whether it is of an example or a table, and stays a line."""
    return re.search(r"^ |\S {2,}\S", line) is not None


def paragraphs(lines):
    out = []
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        for literal, rows in itertools.groupby(block.splitlines(), is_literal):
            text = [escape(row.removeprefix("  ")) for row in rows]
            out += [".PP", ".RS 4", ".nf", *text, ".fi", ".RE"] if literal else [".PP", *text]
    return out


def entry(option):
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in option.names)
    value = re.sub(r"^(:?[A-Z]+)", r"\\fI\1\\fR", escape(option.value))
    return [".TP", f"{names} {value}".rstrip(), escape(option.text) or "\\&"]


def body(command, shared):
    """A command's text and options, those that it shares only by their names."""
    own = [o for o in command.options if o.names[-1] != "--help"]
    also = [o for o in own if shared.get(o.names[-1]) == o]
    out = paragraphs(command.about)
    for option in [*command.positionals, *(o for o in own if o not in also)]:
        out += entry(option)
    if also:
        names = ", ".join(f"\\fB{escape(o.names[-1])}\\fR" for o in also)
        out += [".PP", f"Also {names}: see", f'.BR "{SHARED}" .']
    return out


def name_line(root):
    """The first sentence, as what follows a program's name."""
    program = root.words[0]
    text = re.sub(rf"^({program}:|Mosa) ", "", root.summary).rstrip(".")
    return f"{escape(program)} \\- {escape(text[0].lower() + text[1:])}"


def page(root):
    program = root.words[0]
    shared = program_help.shared_options(root)
    out = [
        '.\\" Written by tests/docs/docs_test.py --write, of what --help prints.',
        f'.TH {escape(program.upper())} {SECTIONS[program]} "" Mosa Mosa',
        ".nh",
        ".ad l",
        ".SH NAME",
        name_line(root),
        ".SH SYNOPSIS",
        f".B {escape(program)}",
        escape(root.usage.removeprefix(program).strip()),
        ".SH DESCRIPTION",
        *paragraphs([re.sub(rf"^{program}: ", "", root.summary), *root.about[1:], *root.after]),
        ".SH OPTIONS",
    ]
    for option in [*root.positionals, *root.options]:
        out += entry(option)
    for group, members in root.groups.items():
        out.append(f".SH {group.upper()}")
        for member in members:
            for command in member.tree():
                out.append(f".SS {escape(command.usage)}")
                out += body(command, shared)
    below = {name: option for name, option in shared.items() if name != "--help"}
    if below:
        out.append(f".SH {SHARED}")
        for option in below.values():
            out += entry(option)
    if program in CONFIGURATION:
        out += [".SH FILES", ".TP", f".I {CONFIGURATION[program]}"]
        out.append("Its options, as lines of name = value, where systemd starts it.")
    out += [".SH SEE ALSO"]
    others = [other for other in SECTIONS if other != program]
    out += [f".BR {escape(other)} ({SECTIONS[other]})," for other in others]
    out.append("and the pages in the directory docs of Mosa's documentation")
    return "\n".join(out) + "\n"


def file_of(program):
    return f"tools/man/{program}.{SECTIONS[program]}"


def check_itself():
    assert escape(".x -'\\") == "\\&.x \\-\\(aq\\e"
    assert paragraphs(["A", "b", "", "  x -y", "  z"]) == [
        *[".PP", "A", "b"],
        *[".PP", ".RS 4", ".nf", "x \\-y", "z", ".fi", ".RE"],
    ]
