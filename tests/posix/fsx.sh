#!/bin/bash
# fsx.sh PATH [OPERATIONS]: random reads, writes, mapped I/O, truncations, holes and copies of one file below PATH, each
# read checked against a model; four seeds, first on tmpfs, then below PATH.
#
# Exit code: 0 every byte was right, 1 one was not (the seed is named), 2 it could not run.
set -uo pipefail
source "$(dirname "$0")/conformance_tool.sh"

[ $# -ge 1 ] && [ -d "$1" ] || { echo "usage: fsx.sh PATH [OPERATIONS]" >&2; exit 2; }
operations=${2:-10000}
program=$(install_tool fsx 0.3.2) || exit 2

work=$(mktemp -d) && reference=$(mktemp -d /dev/shm/fsx.XXXXXX) && tested=$(mktemp -d "$1/fsx.XXXXXX") || exit 2
trap 'rm -rf "$work" "$reference" "$tested"' EXIT

cat > "$work/settings.toml" <<'TOML'
flen = 4194304

[opsize]
max = 131072

[weights]
close_open = 1
invalidate = 1
mapread = 10
mapwrite = 10
read = 10
write = 10
truncate = 5
fsync = 1
fdatasync = 1
posix_fallocate = 1
punch_hole = 2
sendfile = 1
posix_fadvise = 1
copy_file_range = 2
TOML

for seed in 1 2 3 4; do
  for directory in "$reference" "$tested"; do
    if ! timeout 120 "$program" -q -f "$work/settings.toml" -N "$operations" -S "$seed" -P "$work" "$directory/file" \
        > "$work/out" 2>&1; then
      tail -20 "$work/out"
      echo "fsx failed in $directory with seed $seed within $operations operations"
      exit 1
    fi
    rm -f "$directory/file"
  done
done
echo "fsx: 4 seeds of $operations operations, every byte right below $1"
