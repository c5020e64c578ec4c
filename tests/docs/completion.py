"""Completions of `mosa` for bash and zsh, of what its --help prints."""

import textwrap

import program_help

NOTE = "Written by tests/docs/docs_test.py --write, of what 'mosa --help' prints."
BASH = "tools/completion/mosa.bash"
ZSH = "tools/completion/_mosa"
WIDTH = 100
JSON = program_help.Option(("--json",), "", "Print JSON with stable names")

BASH_ENGINE = """
_mosa() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local below flags values at= word
  _mosa_of ''
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -- ]] && return # A program and its arguments.
    if [[ -n $word && " $below " == *" $word "* ]]; then
      at+=${at:+ }$word
      _mosa_of "$at"
    fi
  done
  _mosa_values "$at $previous"
  if [[ -z $values && $current == -* ]]; then
    values=$flags
  fi
  COMPREPLY=($(compgen -W "${values:-$below}" -- "$current"))
}

# Where nothing else is known: files.
complete -o bashdefault -o default -F _mosa mosa
"""

ZSH_ENGINE = """
_mosa() {
  local -a below flags values
  local at= word
  _mosa_of ''
  for word in "${(@)words[2,CURRENT-1]}"; do
    if [[ $word == -- ]]; then
      _files # Of a program and its arguments.
      return
    elif [[ -n $word && -n ${(M)below:#${(b)word}:*} ]]; then
      at+=${at:+ }$word
      _mosa_of $at
    fi
  done
  _mosa_values "$at $words[CURRENT-1]"
  if (( $#values )); then
    compadd -a values
  elif [[ $PREFIX == -* ]]; then
    _describe -o option flags
  elif (( $#below )); then
    _describe command below
  else
    _files
  fi
}

_mosa "$@"
"""


def key_of(command):
    return " ".join(command.words[1:])


def values_of(root):
    """(command and option, values) of options that name them."""
    return [
        (f"{key_of(command)} {name}", option.choices)
        for command in root.tree()
        for option in command.options
        if option.choices
        for name in option.names
    ]


def options_of(command):
    """A command's options; --json goes with every command."""
    return command.options if len(command.words) == 1 else [*command.options, JSON]


def wrapped(first, words):
    lines = textwrap.wrap(
        first + " ".join(words),
        WIDTH - 4,
        subsequent_indent=" " * 8,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return " \\\n".join(lines)


def bash(root):
    out = [f"# Completion of mosa for bash. {NOTE}", ""]
    out += ["# The commands and the options that may follow a command.", "_mosa_of() {"]
    out += ["  below= flags=", "  case $1 in"]
    for command in root.tree():
        out.append(f"    '{key_of(command)}')")
        below = [deeper.words[-1] for deeper in command.commands]
        if below:
            out.append(wrapped('      below="', below) + '"')
        names = [name for option in options_of(command) for name in option.names]
        out += [wrapped('      flags="', names) + '"', "      ;;"]
    out += ["  esac", "}", "", "# The values that may follow an option.", "_mosa_values() {"]
    out += ["  values=", "  case $1 in"]
    out += [f"    '{key}') values='{' '.join(values)}' ;;" for key, values in values_of(root)]
    return "\n".join([*out, "  esac", "}"]) + "\n" + BASH_ENGINE


def in_quotes(text):
    return "'" + text.replace("'", "'\\''") + "'"


def short(text):
    """A text that fits beside its name on a line."""
    return textwrap.shorten(text, 72, placeholder=" ...")


def array(name, items):
    line = f"      {name}=({' '.join(items)})"
    if len(line) <= WIDTH and not any("'" in item for item in items):
        return [line]
    return [f"      {name}=(", *(f"        {item}" for item in items), "      )"]


def zsh(root):
    shared = program_help.shared_options(root)
    shared["--json"] = JSON
    out = ["#compdef mosa", f"# Completion of mosa for zsh. {NOTE}", ""]
    out += ["# What options do that several commands have.", "typeset -gA _mosa_shared=("]
    for option in shared.values():
        out += [f"  {name} {in_quotes(short(option.text))}" for name in option.names]
    out += [")", "", "# The commands and the options that may follow a command.", "_mosa_of() {"]
    out += ["  below=() flags=()", "  case $1 in"]
    for command in root.tree():
        out.append(f"    '{key_of(command)}')")
        below = command.commands
        if below:
            items = [in_quotes(f"{other.words[-1]}:{short(other.summary)}") for other in below]
            out += array("below", items)
        own, usual = [], []
        for option in options_of(command):
            if shared.get(option.names[-1]) == option:
                usual += option.names
            else:
                own += [in_quotes(f"{name}:{short(option.text)}") for name in option.names]
        out += array("flags", [*own, " ".join(usual)])
        out.append("      ;;")
    out += ["  esac", "  local flag all=()", "  for flag in $flags; do"]
    out += ["    [[ $flag == *:* ]] || flag+=:$_mosa_shared[$flag]", "    all+=($flag)", "  done"]
    out += ["  flags=($all)"]
    out += ["}", "", "# The values that may follow an option.", "_mosa_values() {"]
    out += ["  values=()", "  case $1 in"]
    out += [f"    '{key}') values=({' '.join(values)}) ;;" for key, values in values_of(root)]
    return "\n".join([*out, "  esac", "}"]) + "\n" + ZSH_ENGINE


def check_itself():
    option = program_help.Option(("-s", "--system"), "TEXT:{a,b}=a", "It's one of two")
    deeper = program_help.Command(["mosa", "up"], "", ["Begin"], options=[option])
    root = program_help.Command(["mosa"], "", ["All"], groups={"Store": [deeper]})
    assert 'below="up"' in bash(root) and 'flags="-s --system --json"' in bash(root)
    assert "'up --system') values='a b' ;;" in bash(root)
    assert "'-s:It'\\''s one of two'" in zsh(root) and "'up:Begin'" in zsh(root)
