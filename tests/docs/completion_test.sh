#!/bin/bash
# What the completion of mosa for bash proposes, and that zsh can read its own, if there is a zsh.
#
#   completion_test.sh DIRECTORY   of mosa.bash and _mosa
set -uo pipefail

wrong=0

# proposes WHAT WORD...: for the last of these words, after mosa.
proposes() {
  local expected=$1
  shift
  COMP_WORDS=(mosa "$@") COMP_CWORD=$# COMPREPLY=()
  _mosa
  if [ "${COMPREPLY[*]}" != "$expected" ]; then
    echo "mosa $*: '${COMPREPLY[*]}', not '$expected'"
    wrong=1
  fi
}

bash -n "$1/mosa.bash" || exit 1
source "$1/mosa.bash"
proposes predict pred
proposes predict --json pred
proposes "up down restart status exec" cluster ""
proposes drain node dr
proposes "remove" hint rule rem
proposes --hosts cluster up --ho
proposes "--version" --ver
proposes "wass dss" run --system ""
proposes "wass" run words.yaml --system w
proposes "" run words
proposes "" cluster exec h1 -- --na
complete -p mosa | grep -q -- '-F _mosa' || wrong=1
if command -v zsh >/dev/null; then
  zsh -n "$1/_mosa" || wrong=1
fi
[ "$wrong" -eq 0 ] && echo "completions are good"
exit "$wrong"
