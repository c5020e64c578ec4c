# What prolog, epilog and task-prolog share. Slurm gives them no search path.
# The caller sets `here`, the directory of this file, and `job`, the number of the Slurm job.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
. "$here/mosa.conf"
dir=$state/$job mount=$mounts/$job

# What slurmd logs when we fail is our standard error; the log has it all.
say() {
  echo "mosa: job $job on $node: $*" >&2
  echo "$(date +%FT%T%z) job $job on $node: $*" 2>/dev/null >>"$log"
}

# Drains this node with a reason that `sinfo -R` shows: Slurm itself would only say "Prolog error". Calling Slurm is bad in
# prologs of all jobs, not in the rare one that fails.
drain() { timeout 10 scontrol update nodename="$node" state=drain reason="mosa: job $job: $*" 2>/dev/null; }

# A process is known by its number and its start, so that no other is ever ended. A zombie has ended.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'; }
alive() {  # alive KIND: whether that daemon of this job runs here
  read -r pid ticks 2>/dev/null <"$dir/$1.pid" && [ -n "$ticks" ] && [ "$(started "$pid")" = "$ticks" ]
}

# start KIND ARGUMENT...: starts mosa-KIND and waits until it serves; `why` says what went wrong.
start() {
  local kind=$1 waits
  shift
  rm -f "$dir/$kind.ready"
  setsid "$bin/mosa-$kind" "$@" --secret "$dir/secret.pem" --log-file "$dir/$kind.log" \
    --ready-file "$dir/$kind.ready" </dev/null >"$dir/$kind.out" 2>&1 9>&- &
  pid=$!
  echo "$pid $(started "$pid")" >"$dir/$kind.pid"
  for waits in $(seq $((wait_seconds * 10))); do
    [ -f "$dir/$kind.ready" ] && return 0
    [ -d "/proc/$pid" ] || break
    sleep 0.1
  done
  why=$(cat "$dir/$kind.log" "$dir/$kind.out" 2>/dev/null | tail -n 1)
  why="mosa-$kind did not start: ${why#"mosa-$kind: "}"
  return 1
}

# Each of these goes on where it was if it has died.
start_manager() {
  start manager --listen "${manager:-$own:$port}" --data-dir "$dir/data" --cluster-name "slurm-$job"
}
start_storage() {
  start storage --name "$node" --manager "$manager" --listen "$own:0" --dir "$dir/objects" --limit "$limit" \
    --socket "$dir/node.sock"
}
start_mount() {
  if mounted "$mount"; then umount -l "$mount"; fi
  start mount "$mount" --manager "$manager" --name "$node" --allow-other
}

end() {
  local waits
  alive "$1" || return 0
  kill "$pid"
  for waits in $(seq 100); do
    alive "$1" || return 0
    sleep 0.1
  done
  kill -9 "$pid"
}

mounted() { grep -qF " $1 " /proc/self/mounts; }

end_mount() {
  end mount
  if mounted "$mount"; then umount -l "$mount"; fi
  rmdir "$mount" 2>/dev/null
}

# Ends what of this job's store is on this node, and all that is stored here.
stop() {
  end_mount
  end storage
  end manager
  if mounted "$dir/objects"; then umount "$dir/objects" 2>/dev/null || umount -l "$dir/objects"; fi
}

tear_down() {
  stop
  # Nothing is removed below a mount.
  if mounted "$mount" || mounted "$dir/objects"; then
    why="cannot unmount $mount and $dir/objects"
    return 1
  fi
  rm -rf "$dir"
}

# The letter of a job's head node to the others: a line that begins with "ready" or "over", then the secret. Whoever may
# write in $shared can put something there, but nothing that munge says root has sealed. It is not removed with the job,
# as a node may be late, but when it is old.
send() {
  { echo "$1" && cat; } | munge --restrict-uid=0 >"$letter.new" && chmod 644 "$letter.new" && mv "$letter.new" "$letter"
}
# Reads a letter that was not read before: its first line into `word` and `text`, all of it into $dir/letter.
receive() {
  ! cmp -s "$letter" "$dir/sealed" || return 1
  cp "$letter" "$dir/sealed" 2>/dev/null &&
    unmunge --numeric --keys=UID --metadata="$dir/sender" --output="$dir/letter" <"$dir/sealed" 2>"$dir/unmunge.out" &&
    grep -q '^UID: *0$' "$dir/sender" && read -r word text <"$dir/letter" && return
  rm -f "$dir/sealed"
  return 1
}

ask() { timeout 60 "$bin/mosa" "$@" --manager "$manager" --secret "$dir/secret.pem"; }

# Whether another node's store is over: the head node says so, or its manager cannot be reached for wait_seconds.
over() {
  local since=$SECONDS
  while [ $((SECONDS - since)) -lt "$wait_seconds" ]; do
    receive && [ "$word" = over ] && return
    timeout 5 "$bin/mosa" status --manager "$manager" --secret "$dir/secret.pem" >/dev/null 2>&1 && return 1
    sleep 1
  done
}
