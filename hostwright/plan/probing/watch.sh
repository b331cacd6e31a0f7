# watch MAIN: ends a probe that does not end by itself. The probe in progress is the child of the shell with the process
# id MAIN. One that has run for $bound_s seconds gets a line "$nonce late SECONDS" behind what it has printed, and is
# killed with all that it started; the shell then goes on with the next. After each, the next gets half the time, but
# at least $least_s: where one hangs, others do for the same reason, and the whole look has its bound too.
#
# Until then this costs one `sleep`. How old a process is, is known from a `sleep` that began at a known time: the
# uptime in /proc is another one in some containers. A process may have put a line end into its own name, and what
# follows could pass for another process: a line counts only with the number of the file that it stands in.
#
# What a kill does not end (a driver that never returns, a daemon) may hold the pipe to `head`, which then never ends,
# and the connection with it. So when all is said `head` is ended, behind enough padding for it to have written the rest.
: "${nonce:?}"
: "${bound_s:?}"
: "${least_s:?}"
watch() {
  bound=$bound_s slept=$bound_s killed='' head='' rounds=0
  trap 'kill "$!"; [ -z "$killed" ] || leave; exit 0' TERM
  # Nothing ends a shell that itself never returns: then this ends before it.
  while [ -d "/proc/$1" ] && [ "$rounds" -lt 600 ]; do
    rounds=$((rounds + 1))
    sleep "$slept" >/dev/null & nap=$!
    wait "$nap"
    # The `sleep` that began this long ago is gone: another one stands for now.
    sleep 1 >/dev/null & nap=$!
    # shellcheck disable=SC2046  # numbers
    set -- "$1" $(grep -sH . /proc/[0-9]*/stat | late "$1" "$nap")
    head=$2
    if [ $# -gt 2 ]; then
      main=$1; shift 2
      printf '\n%s late %s\n' "$nonce" "$bound"
      killed="$killed $*"  # before the kill: the last probe's end may be heard at once
      kill -STOP "$@" # or a shell whose child is killed first goes on, and what it then says passes for an answer
      kill -KILL "$@"
      bound=$((bound / 2)); [ "$bound" -ge "$least_s" ] || bound=$least_s
      set -- "$main"
    fi
    wait "$nap"
    slept=1
  done
}
# From lines "FILE:stat": the process id of `head`, and those of the probe that is late and of what it started.
late() {
  # shellcheck disable=SC2016  # awk's own
  awk -v main="$1" -v now="$2" -v bound="$bound" -v killed=" $killed " '{
    file = $0; sub(/^\/proc\//, "", file); sub(/\/.*/, "", file)
    line = substr($0, length("/proc//stat:") + length(file) + 1)
    name = file " ("; if (index(line, name) != 1) next
    sub(/.*[)] /, "", line); if (split(line, field, " ") < 20) next
    parent[file] = field[2]; began[file] = field[20]
  } END {
    for (p in parent) if (p != main && parent[p] == parent[main]) head = p
    print head
    for (p in parent)
      if (parent[p] == main && p != parent[now] && began[now] - began[p] >= bound * 100 && !index(killed, " " p " "))
        hit[p]
    for (again = 1; again;) {
      again = 0
      for (p in parent) if (!(p in hit) && (parent[p] in hit)) { hit[p]; again = 1 }
    }
    for (p in hit) print p
  }'
}
leave() {
  printf '%8192s' ''
  exec >/dev/null
  sleep 1
  read -r name <"/proc/$head/comm" && [ "$name" = head ] && kill -ALRM "$head"
}
