#!/bin/bash
# pjdfstest.sh PATH: runs pjdfstest below PATH and on tmpfs; whatever tmpfs passes must pass on PATH. Needs root.
#
# Exit code: 0 all passed, 1 some did not (each is named), 2 it could not run.
set -uo pipefail
source "$(dirname "$0")/conformance_tool.sh"

[ $# -eq 1 ] && [ -d "$1" ] || { echo "usage: pjdfstest.sh PATH (a directory)" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "pjdfstest changes users: run it as root" >&2; exit 2; }
program=$(install_tool pjdfstest 0.2.2) || exit 2

work=$(mktemp -d) && reference=$(mktemp -d /dev/shm/pjdfstest.XXXXXX) && tested=$(mktemp -d "$1/pjdfstest.XXXXXX") || exit 2
trap 'rm -rf "$work" "$reference" "$tested"' EXIT
chmod 755 "$reference" "$tested"

cat > "$work/settings.toml" <<'TOML'
[features]
posix_fallocate = {}
utimensat = {}
utime_now = {}
stat_st_birthtime = {}
rename_ctime = {}

[settings]
naptime = 0.02

[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"], ["games", "games"]]
TOML

# run DIRECTORY NAME: leaves the output in NAME.out and the names of the passed tests in NAME.passed.
run() {
  (cd "$1" && timeout 300 "$program" -c "$work/settings.toml" -p "$1") > "$work/$2.out" 2>&1
  awk '$NF == "ok" { print $1 }' "$work/$2.out" | sort > "$work/$2.passed"
  grep -q '^Summary:' "$work/$2.out" || { echo "pjdfstest did not finish on $1:"; tail -5 "$work/$2.out"; exit 2; } >&2
  echo "$2: $(grep '^Summary:' "$work/$2.out" | cut -d' ' -f2-)"
}
run "$reference" tmpfs
run "$tested" tested

missing=$(comm -23 "$work/tmpfs.passed" "$work/tested.passed")
if [ -n "$missing" ]; then
  echo "passed by tmpfs, but not below $1:"
  while read -r name; do grep -F -A3 -- "$name " "$work/tested.out"; done <<< "$missing"
  echo "$(wc -l <<< "$missing") of $(wc -l < "$work/tmpfs.passed") failed"
  exit 1
fi
echo "all $(wc -l < "$work/tmpfs.passed") tests that tmpfs passes pass below $1"
