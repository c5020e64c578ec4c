# Sourced. install_tool NAME VERSION: prints the path of a program from crates.io below build/tools, and installs it
# there when it is absent or of another version.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

install_tool() {
  local program=$root/build/tools/bin/$1
  if ! "$program" --version 2>/dev/null | grep -qF " $2"; then
    command -v cargo >/dev/null || { echo "cargo is missing: install it to build $1 $2" >&2; return 1; }
    cargo install --quiet --locked --root "$root/build/tools" --version "$2" "$1" >&2 || return 1
  fi
  echo "$program"
}
