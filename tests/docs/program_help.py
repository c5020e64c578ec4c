"""Reads what the programs' --help prints, of which pages, manuals and completions are made."""

import dataclasses
import pathlib
import re
import subprocess

# Where the texts of options and commands begin.
COLUMN = 30


@dataclasses.dataclass(frozen=True)
class Option:
    names: tuple[str, ...]  # Of a positional its one name.
    value: str  # As it is printed: "TEXT=1G", "TEXT:{ok,failed} REQUIRED", or nothing.
    text: str

    @property
    def choices(self):
        found = re.search(r"\{([^ }]+)\}", self.value)
        return found.group(1).split(",") if found else []


@dataclasses.dataclass
class Command:
    words: list[str]  # mosa cluster up
    help: str  # All that is printed.
    about: list[str] = dataclasses.field(default_factory=list)
    usage: str = ""
    positionals: list[Option] = dataclasses.field(default_factory=list)
    options: list[Option] = dataclasses.field(default_factory=list)
    groups: dict[str, list["Command"]] = dataclasses.field(default_factory=dict)
    after: list[str] = dataclasses.field(default_factory=list)  # Lines below the options.

    @property
    def title(self):
        return " ".join(self.words)

    @property
    def summary(self):
        return self.about[0]

    @property
    def commands(self):
        return [command for group in self.groups.values() for command in group]

    def tree(self):
        """This and all below it, in the order in which help shows them."""
        return [self, *(deeper for command in self.commands for deeper in command.tree())]


def help_of(binaries, words):
    """What a program prints that was started by its plain name."""
    program = str(pathlib.Path(binaries).resolve() / words[0])
    done = subprocess.run(
        [*words, "--help"],
        executable=program,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd="/",
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def entries_of(lines):
    """(left column, text) of each entry; a text may stand on the lines below."""
    found = []
    for at, line in enumerate(lines):
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if line.startswith(" " * COLUMN):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}".strip())
        elif below.startswith(" " * COLUMN):
            found.append((line.strip(), ""))
        else:
            found.append((line[:COLUMN].strip(), line[COLUMN:].strip()))
    return found


def option_of(entry):
    names, _, value = entry[0].partition(" ")
    return Option(tuple(names.split(",")), value, entry[1])


def sections_of(lines):
    """The lines before usage, the usage, the indented lines of each section, and those after."""
    start = next(at for at, line in enumerate(lines) if line.startswith("Usage: "))
    sections, after, inside = {}, [], None
    for line in lines[start + 1 :]:
        if re.fullmatch(r"[A-Z][a-z]+:", line) and line != "Example:":
            inside = sections.setdefault(line[:-1], [])
        elif inside is not None and line.startswith("  "):
            inside.append(line)
        elif line or after:
            inside = None
            after.append(line)
    return lines[:start], lines[start].removeprefix("Usage: "), sections, after


def parse(words, text, ask):
    """The command of these words that printed `text`; `ask` has the text of any others."""
    command = Command(list(words), text)
    about, command.usage, sections, command.after = sections_of(text.splitlines())
    command.about = "\n".join(about).strip().splitlines()
    for name, lines in sections.items():
        entries = entries_of(lines)
        if name == "Positionals":
            command.positionals = [option_of(entry) for entry in entries]
        elif name == "Options":
            command.options = [option_of(entry) for entry in entries]
        else:
            below = [[*words, name] for name, _ in (line.split(None, 1) for line in lines)]
            command.groups[name] = [parse(deeper, ask(deeper), ask) for deeper in below]
    return command


def read(binaries, program):
    """A program with all its commands."""
    return parse([program], help_of(binaries, [program]), lambda words: help_of(binaries, words))


def shared_options(root, least=4):
    """By name, options that at least so many commands have, each in its most usual form."""
    counts = {}
    for command in root.tree():
        for option in command.options:
            of_name = counts.setdefault(option.names[-1], {})
            of_name[option] = of_name.get(option, 0) + 1
    usual = {name: max(forms, key=forms.get) for name, forms in counts.items()}
    return {name: form for name, form in usual.items() if counts[name][form] >= least}


def check_itself():
    text = """Does much

  mosa x a
Usage: mosa x [OPTIONS] file

Positionals:
  file TEXT REQUIRED          A file

Options:
  -h,--help                   Print this help message and exit
  --system TEXT:{wass,dss}=wass
                              Which: see below
  --all Excludes: --one       All

Store:
  up                          Begins, and so on

Example:
  mosa x b"""
    command = parse(["mosa", "x"], text, lambda words: "Deep\nUsage: deep\n\nOptions:\n  -h")
    assert command.about == ["Does much", "", "  mosa x a"], command
    assert command.usage == "mosa x [OPTIONS] file", command
    assert command.positionals == [Option(("file",), "TEXT REQUIRED", "A file")], command
    assert command.options[0].names == ("-h", "--help"), command
    assert command.options[1].choices == ["wass", "dss"], command
    assert command.options[1].text == "Which: see below", command
    assert command.options[2] == Option(("--all",), "Excludes: --one", "All"), command
    assert [deeper.title for deeper in command.tree()] == ["mosa x", "mosa x up"], command
    assert command.after == ["Example:", "  mosa x b"], command
