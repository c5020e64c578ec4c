# What prolog, epilog and task-prolog share. Slurm gives them no search path.
# The caller sets `here`, the directory of this file, and `job`, the number of the Slurm job.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
. "$here/mosa.conf"
dir=$state/$job mount=$mounts/$job

# What slurmd logs when we fail is our standard error; the log has it all.
say() {
  local text=${*//[[:cntrl:]]/?}  # Names of files and directories are a user's.
  echo "mosa: job $job on $node: $text" >&2
  echo "$(date +%FT%T%z) job $job on $node: $text" 2>/dev/null >>"$log"
  :
}

# Drains this node with a reason that `sinfo -R` shows: Slurm itself would only say "Prolog error". Calling Slurm is bad in
# prologs of all jobs, not in the rare one that fails.
drain() { timeout 10 scontrol update nodename="$node" state=drain reason="mosa: job $job: ${*//[[:cntrl:]]/?}" 2>/dev/null; }

# A process is known by its number and its start, so that no other is ever ended. A zombie has ended.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'; }
alive() {  # alive KIND: whether that daemon of this job runs here
  read -r pid ticks 2>/dev/null <"$dir/$1.pid" && [ -n "$ticks" ] && [ "$(started "$pid")" = "$ticks" ]
}

# start KIND ARGUMENT...: starts mosa-KIND, with the secret of its role, and waits until it serves; `why` says what went wrong.
start() {
  local kind=$1 role=$1 waits
  [ "$kind" != storage ] || role=node
  shift
  rm -f "$dir/$kind.ready"
  setsid "$bin/mosa-$kind" "$@" --secret "$dir/secrets/$role.pem" --log-file "$dir/$kind.log" \
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
  # Without --fsync: its directory is in RAM, and ends with the machine whatever is synced.
  start manager --listen "${manager:-$own:$port}" --data-dir "$dir/data" --cluster-name "slurm-$job" --user-share 100
}
start_storage() {
  start storage --name "$node" --manager "$manager" --listen "$own:0" --dir "$dir/objects" --limit "$limit" \
    --socket "$dir/node.sock"
}
start_mount() {
  if mounted "$mount"; then umount -l "$mount"; fi
  start mount "$mount" --manager "$manager" --name "$node" --allow-other
}

# A daemon that has died, for want of memory perhaps, still has its files: it serves again until they are saved.
revive() {
  local kind
  for kind in "$@"; do
    alive "$kind" || "start_$kind" || return 1
  done
}

end() {
  local waits
  alive "$1" || return 0
  kill "$pid"
  for waits in $(seq 200); do  # A mount takes up to 15 s to write what it still has.
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
  local disk
  for disk in "$dir/objects" "$dir/data"; do
    if mounted "$disk"; then umount "$disk" 2>/dev/null || umount -l "$disk"; fi
  done
}

tear_down() {
  stop
  # Nothing is removed below a mount.
  if mounted "$mount" || mounted "$dir/objects" || mounted "$dir/data"; then
    why="cannot unmount $mount, $dir/objects and $dir/data"
    return 1
  fi
  rm -rf "$dir"
}

# The letter of a job's head node to the others: a line with its name and "ready" or "over", then secrets. Munge says that
# root has sealed it, and the name that it is of this job and run. It is not removed with the job, as a node may be late, but
# when it is old.
send() {
  local new
  new=$(mktemp "$letter.XXXXXX") && { echo "${letter##*/} $1" && cat; } | munge --restrict-uid=0 >"$new" &&
    chmod 644 "$new" && mv -T "$new" "$letter"
}
# Reads a letter that was not read before: its first line into `word` and `text`, all of it into $dir/letter.
receive() {
  local name
  ! cmp -s "$letter" "$dir/sealed" || return 1
  cp "$letter" "$dir/sealed" 2>/dev/null &&
    unmunge --numeric --keys=UID --metadata="$dir/sender" --output="$dir/letter" <"$dir/sealed" 2>"$dir/unmunge.out" &&
    grep -q '^UID: *0$' "$dir/sender" && read -r name word text <"$dir/letter" &&
    [ "$name" = "${letter##*/}" ] && return
  rm -f "$dir/sealed"
  return 1
}

# On the head node: asks the manager, as its admin.
ask() { timeout -k 10 60 "$bin/mosa" "$@" --manager "$manager" --secret "$dir/secrets/admin.pem" 9>&-; }

# Whether Slurm holds node $1 for lost. Silence alone is no loss: a node may be cut off for a while, or stopped.
down() { timeout -k 10 10 scontrol -o show node "$1" 2>/dev/null | grep -qE ' State=([^ ]*\+)?(DOWN|POWERED_DOWN)[*+ ]'; }

# over SECONDS: whether another node's store is over: its head node says so, or its manager is silent for wait_seconds and Slurm
# holds that node for lost. Else 1 if the manager answers, 2 after SECONDS of silence; `why` says it.
over() {
  local since=$SECONDS
  while [ -e "$dir/job" ]; do
    receive && [ "$word" = over ] && return
    why="the manager on $head still runs"
    timeout -k 5 5 "$bin/mosa" status --manager "$manager" --secret "$dir/job.pem" >/dev/null 2>&1 && return 1
    [ $((SECONDS - since)) -ge "$wait_seconds" ] && down "$head" && return
    why="the manager on $head does not answer for $1 s, but Slurm does not say that $head is down"
    [ $((SECONDS - since)) -lt "$1" ] || return 2
    sleep 1
  done
}
