# Runs the steps of one role in order: what the calls of `step` are appended to, one for each step.
# $JOB is the directory with their files. It writes to standard output, which is $JOB/log, a line "$nonce begin N" and
# a line "$nonce end N STATUS MILLISECONDS" for each step, "$nonce waited N MILLISECONDS" once a lock is taken that was
# not free, "$nonce retry TRY N SECONDS" before each wait, and once "$nonce waits N SENTENCE" while somebody else holds a
# lock of apt's or dpkg's. It needs `work`, and `acquire` and `release` of turns.sh.
: "${nonce:?}"
: "${lock_dir:?}"
: "${lock_wait_s:?}"
: "${step_cap:?}"
: "${job_cap:?}"
: "${end_bytes:?}"
: "${reserve:?}"
: "${told_ms:?}"
: "${error:?}"
: "${apt_locks:?}"
: "${backoff_ms:?}"
: "${backoff_max_ms:?}"
set -u
umask 022
LC_ALL=C; export LC_ALL
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
HOME=/root; export HOME
# What is hooked into apt on a host: needrestart would restart services that people work with, in whichever mode it is set
# to, apt-listchanges and debconf would ask, and apt-listbugs would end an installation.
NEEDRESTART_SUSPEND=1 NEEDRESTART_MODE=l DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none APT_LISTBUGS_FRONTEND=none
export NEEDRESTART_SUSPEND NEEDRESTART_MODE DEBIAN_FRONTEND APT_LISTCHANGES_FRONTEND APT_LISTBUGS_FRONTEND
# Installers and compilers run programs where they unpack. Whoever started us may have a TMPDIR of his own: not here.
unset TMP TEMP
work_dir=$(work "${JOB##*/}") || echo 'hostwright: no directory was found in which programs may be run'
# Where there is no such directory, it is the job's own: only root may look into that, while /tmp is everybody's.
TMPDIR=${work_dir:-$JOB}; export TMPDIR
stopping=${stopping:-}

# Uptime does not jump when somebody sets the clock.
uptime_ms() { read -r up _ </proc/uptime; echo "${up%.*}${up#*.}0"; }

# One try.
once() {
  from=$(( $(wc -c <"$JOB/log") + 1 ))
  room=$((step_cap / tries))
  { [ "$from" -le "$job_cap" ] && [ "$room" -gt $((2 * end_bytes)) ]; } || room=$((2 * end_bytes))
  fallocate -n -o "$from" -l "$reserve" "$JOB/log" 2>/dev/null || :
  # Both ends are opened while 4 has both: an open that waits for the other end fails where a signal comes.
  # shellcheck disable=SC2094  # a pipe
  exec 4<>"$JOB/out" 3<"$JOB/out" 5>"$JOB/out" 4>&-
  setsid sh "$JOB/drain" "$room" "$end_bytes" <&3 3<&- 5>&- 7>&- &
  drainer=$!
  exec 3<&-
  if locked; then
    watching='' watched=$JOB/watched.$from  # the file is there as long as the try runs
    # By `exec`: to close descriptors for a function alone, sh keeps copies of them, and with one of 7 the lock.
    [ "$lock" != dpkg ] || { : >"$watched"; (exec 5>&- 7>&-; told_waits "$apt_locks") & watching=$!; }
    timeout -k 30 "$limit" sh -eu "$JOB/step-$number" </dev/null >&5 2>&1 5>&- 7>&-
    status=$?
    [ -z "$watching" ] || { rm -f -- "$watched"; kill "$watching" 2>/dev/null || :; }
  else
    status=1
    printf '%sits lock (%s) was not free within %s s\n' "$error" "$lock" "$lock_wait_s" >&5
  fi
  exec 5>&-
  drained
}

locked() {
  [ -n "$lock" ] || { release; return 0; }
  acquire "$lock" "$rank" || return 1
  [ -z "$stopping" ] || exit 143
  [ "${waited_ms:-0}" -lt "$told_ms" ] || printf '%s waited %s %s\n' "$nonce" "$number" "$waited_ms"
}

# Says once whom this step waits for: apt waits without a word, and for minutes where unattended-upgrades is at work.
# Whoever is seen twice holds the lock for longer than a moment. A signal that comes while sh forks is lost, so the file
# says as well that the try has ended.
told_waits() {
  eval "set -- $1"
  before='' pausing=''
  trap 'kill "$pausing" 2>/dev/null; exit' TERM  # else the pause would outlive the step
  for pause in 2 2 4 8 15 30 60 120 240; do
    sleep "$pause" & pausing=$!
    wait "$pausing"
    [ -e "$watched" ] || return 0
    holder=$(foreign "$@")
    if [ -n "$holder" ] && [ "$holder" = "$before" ]; then
      printf '\n%s waits %s %s\n' "$nonce" "$number" "$holder"
      return
    fi
    before=$holder
  done
}

# The first process that holds one of these files locked and was not started by this job: /proc/locks names processes and inodes,
# and other filesystems have the same inode numbers.
foreign() {
  inodes=$(stat -c %i -- "$@" 2>/dev/null | tr '\n' ' ')
  while read -r _ kind _ mode pid place _; do
    case $kind-$mode in POSIX-WRITE | OFDLCK-WRITE) ;; *) continue ;; esac
    case " $inodes" in *" ${place##*:} "*) ;; *) continue ;; esac
    parent=$pid
    while [ "${parent:-0}" -gt 1 ] && [ "$parent" != "$$" ]; do
      above=; while read -r key above _; do [ "$key" != PPid: ] || break; done <"/proc/$parent/status"
      parent=$above
    done
    [ "$parent" != "$$" ] || continue
    for file; do
      for open in "/proc/$pid/fd"/*; do
        [ "$open" -ef "$file" ] || continue
        name=; read -r name <"/proc/$pid/comm"
        case $name in '' | *[!A-Za-z0-9._+-]*) name='a process' ;; esac
        case $file in *dpkg*) whose=dpkg ;; *) whose=apt ;; esac
        echo "$whose's lock, held by $name (pid $pid)"
        return
      done
    done
  done </proc/locks 2>/dev/null
}

# Wait until the log has all that the step printed. Something that the step left behind may hold the pipe open; that is
# looked for after 2 s (the links of /proc/PID/fd say who may write). It keeps a reader, opened without waiting for a
# writer, so that it can go on printing; the next step gets a pipe of its own. A disk may need longer than 2 s.
drained() {
  for pause in 0.01 0.02 0.05 0.1 0.2 0.4 0.5 0.7; do
    kill -0 "$drainer" 2>/dev/null || return 0
    sleep "$pause"
  done
  pipe=$(readlink -f "$JOB/out"); n=0
  until [ "$n" -ge 60 ] || [ -n "$(find /proc/[0-9]*/fd -lname "$pipe" -perm -u=w -print -quit 2>/dev/null)" ]; do
    kill -0 "$drainer" 2>/dev/null || return 0
    n=$((n + 1)); sleep 1
  done
  # shellcheck disable=SC2094  # a pipe
  exec 6<>"$JOB/out" 5<"$JOB/out" 6>&-
  cat <&5 >/dev/null 2>&1 7>&- &
  exec 5<&-
  kill -- "-$drainer" 2>/dev/null || :
  rm -f "$JOB/out"; mkfifo "$JOB/out" || exit 1
  printf '\nhostwright: something that this step started runs on; what it prints from here on is not kept\n'
}

# A step that fails for what passes by itself is run again; the lock is free while it waits. A host that shuts down
# lets the running step end, and begins no other (see jobs.py).
last() { tail -c "+$from" "$JOB/log" | tail -c "$end_bytes"; }
passes() {
  while read -r verdict pattern; do
    ! last | grep -aiqP -- "$pattern" || { [ "$verdict" = yes ]; return; }
  done <"$JOB/retries"
  return 1
}
step() {
  number=$1; lock=$2; limit=$3; tries=$4; rank=$5; try=1; backoff=$backoff_ms
  [ -z "$stopping" ] || exit 143
  begin=$(uptime_ms)
  printf '\n%s begin %s\n' "$nonce" "$number"
  once
  while [ "$status" -ne 0 ] && [ "$try" -lt "$tries" ] && [ -z "$stopping" ] && passes; do
    random=$(od -An -N2 -tu2 /dev/urandom)
    wait=$((backoff + backoff * ${random:-0} / 131072))
    wait=$(printf '%d.%03d' "$((wait / 1000))" "$((wait % 1000))")
    printf '\n%s retry %s %s %s\n' "$nonce" "$try" "$number" "$wait"
    release
    sleep "$wait"
    [ -z "$stopping" ] || exit 143
    try=$((try + 1)); backoff=$((backoff * 2)); [ "$backoff" -le "$backoff_max_ms" ] || backoff=$backoff_max_ms
    once
  done
  printf '\n%s end %s %s %s\n' "$nonce" "$number" "$status" "$(( $(uptime_ms) - begin ))"
  return "$status"
}

mkdir -p "$lock_dir"
[ -p "$JOB/out" ] || mkfifo "$JOB/out" || exit 1
