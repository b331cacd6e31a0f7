# mark NUMBER: the mark between two answers, with the status $ended of the probe before it.
# watch MAIN: ends a probe that does not end by itself. The probe in progress is the child of the shell with the process
# id MAIN. One that has run for $bound_s seconds gets a line "$nonce late SECONDS" behind what it has printed, and is
# killed with all that it started; the shell then goes on with the next. After each, the next gets half the time, but
# at least $least_s: where one hangs, others do for the same reason, and the whole look has its bound too.
#
# A look that is done in $beat_s seconds costs one `sleep`; every further $beat_s seconds a line goes to file descriptor
# 3, as a sign of life. How old a process is, is known from a `sleep` that began at a known time: the uptime in /proc is
# another one in some containers. A process may have put a line end into its own name, and what follows could pass for
# another process: a line counts only with the number of the file that it stands in.
#
# What a kill does not end (a driver that never returns, a daemon) may hold the pipe to `head`, which then never ends,
# and the connection with it. So when all is said `head` is ended, behind enough padding for it to have written the rest.
: "${nonce:?}"
: "${bound_s:?}"
: "${least_s:?}"
: "${beat_s:?}"
# shellcheck disable=SC2154  # the program's
mark() { printf '\n%s %s %s\n' "$nonce" "$ended" "$1"; }
watch() {
  bound=$bound_s slept=0 killed='' head='' rounds=0
  trap 'kill "$!"; [ -z "$killed" ] || leave; exit 0' TERM
  while [ "$slept" -lt "$bound_s" ]; do
    nap_s=$((bound_s - slept)); [ "$nap_s" -le "$beat_s" ] || nap_s=$beat_s
    sleep "$nap_s" >/dev/null 3>&- & wait "$!"  # one that does not hear its end holds no channel open
    slept=$((slept + nap_s)); echo . >&3
  done
  # Nothing ends a shell that itself never returns: then this ends before it.
  while [ -d "/proc/$1" ] && [ "$rounds" -lt 600 ]; do
    rounds=$((rounds + 1))
    # a `sleep` that begins now stands for now
    sleep 1 >/dev/null 3>&- & nap=$!
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
    [ $((rounds % beat_s)) -gt 0 ] || echo . >&3
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
