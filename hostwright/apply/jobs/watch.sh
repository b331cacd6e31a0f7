# Prints the log from byte $from_byte on as it grows, until the job ends; then its status, on standard error, so that
# the log stays the log. It needs `alive` of hostwright.plan.host.jobs.
#
# GNU tail ends with the keeper, which lives as long as the job does and somebody listens: that nobody does is known by
# a sign of life that cannot be written. (tail does not look at the job's own process: where no init reaps it, a dead
# one seems to live.) A sign of life is 31 bytes: 0.4 MB in 6 h.
: "${jobs:?}"
: "${job_id:?}"
: "${nonce:?}"
: "${from_byte:?}"
JOB=$jobs/$job_id
ended() { printf '%s status %s\n' "$nonce" "$1" >&2; exit 0; }
keep() {
  trap '' PIPE
  n=0; while [ ! -e "$JOB/status" ]; do
    if [ $((n % 10)) -eq 0 ]; then alive "$job_id" && printf '%s alive\n' "$nonce" >&2 || return 0; fi
    n=$((n + 1)); sleep 0.2 >/dev/null 2>&1; done
}
[ -d "$JOB" ] || ended lost
n=0; until [ -s "$JOB/pid" ] || [ -e "$JOB/status" ]; do
  [ $((n % 20)) -ne 0 ] || printf '%s alive\n' "$nonce" >&2
  n=$((n + 1))
  [ "$n" -le 100 ] || { [ -e "$JOB/begun" ] && ended lost; echo "job $job_id does not start" >&2; exit 1; }
  sleep 0.1; done
keep & keeper=$!
tail -c "+$from_byte" -s 0.2 -f --pid="$keeper" "$JOB/log" &
wait "$!" || { kill "$keeper" 2>/dev/null; echo "the log of job $job_id cannot be read" >&2; exit 1; }
ended "$(cat "$JOB/status" 2>/dev/null || echo lost)"
