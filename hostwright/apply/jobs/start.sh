# Puts a job on the host and starts it detached; it needs `alive` of hostwright.plan.host.jobs. $payload is a tar of the
# job's files, in base64. It prints nothing; where it fails, it says why on standard error.
#
# Doing it twice does it once: the connection may drop before the answer comes. The directory appears whole under its
# name; what was never begun (killed in between) is begun now, and the wrapper begins once only. What was put there
# before the host went down may have lost its files' contents, and is put there anew.
: "${jobs:?}"
: "${job_id:?}"
: "${role:?}"
: "${keep:?}"
: "${keep_kib:?}"
: "${keep_always:?}"
: "${shutdown_wait_s:?}"
: "${work_dirs:?}"
: "${payload:?}"
umask 077
new=
fail() { [ -z "$new" ] || rm -rf -- "$new"; echo "hostwright: the job $job_id cannot be started: $1" >&2; exit 1; }
prune() {
  find . -maxdepth 1 -name '*.new' -mmin +60 -exec rm -rf -- {} + 2>/dev/null
  total=0; count=0
  # shellcheck disable=SC2012  # the names are job ids: letters, digits, '_', '.' and '-'
  ls -1t 2>/dev/null | tr '\n' '\0' | du -sk --files0-from=- 2>/dev/null | while read -r size old; do
    case $old in *.new) continue;; esac
    count=$((count + 1)); total=$((total + size))
    [ "$count" -ge "$keep" ] || { [ "$total" -gt "$keep_kib" ] && [ "$count" -gt "$keep_always" ]; } || continue
    alive "$old" || rm -rf -- "$old"
  done
  # What a job that was killed left where it worked. A check has no job, and ends within the hour. A folder that somebody
  # else owns or may write to is theirs: they could turn it into a link while it is cleared.
  eval "find $work_dirs -maxdepth 0 -type d -uid $(id -u) ! -perm /022" 2>/dev/null | while read -r folder; do
    find "$folder" -mindepth 1 -maxdepth 1 \( ! -name 'check.*' -o -mmin +60 \) 2>/dev/null | while read -r old; do
      alive "${old##*/}" || rm -rf -- "$old"
    done
  done
}
put() {
  new=$(mktemp -d "$jobs/$job_id.XXXXXX.new") || fail "no directory can be made in $jobs; is the disk full?"
  { printf '%s\n' "$payload" | base64 -d | tar -x -C "$new" && echo "$boot" >"$new/boot"; } ||
    fail "its files cannot be written to $jobs; is the disk full?"
  mv -T -- "$new" "$JOB" 2>/dev/null || { [ -d "$JOB" ] && rm -rf -- "$new"; } || fail "$new cannot be renamed"
}
# OOMPolicy (systemd 243): the kernel's choice of a compiler must fail one step, and not stop the job without a word.
begin() {
  if [ -d /run/systemd/system ]; then
    oom=$(systemctl show --property=DefaultOOMPolicy 2>/dev/null)
    systemd-run --quiet --collect --unit="hostwright-$job_id.service" --description="Hostwright: $role" \
      -p KillMode=mixed -p TimeoutStopSec="$shutdown_wait_s" ${oom:+-p OOMPolicy=continue} --setenv=JOB="$JOB" \
      /bin/sh "$JOB/wrapper" || [ -e "$JOB/begun" ] || fail 'systemd refuses its unit'
  else
    setsid /bin/sh "$JOB/wrapper" </dev/null >/dev/null 2>&1 &
  fi
}
{ install -d -m 755 "$(dirname "$jobs")" && install -d -m 700 "$jobs" && cd "$jobs"; } || fail 'is the disk full?'
JOB=$jobs/$job_id; export JOB
boot=$(cat /proc/sys/kernel/random/boot_id)
[ ! -d "$JOB" ] || [ -e "$JOB/begun" ] || [ "$(cat "$JOB/boot")" = "$boot" ] || rm -rf -- "$JOB"
[ -d "$JOB" ] || { prune; put; }
[ -e "$JOB/begun" ] || alive "$job_id" || begin
