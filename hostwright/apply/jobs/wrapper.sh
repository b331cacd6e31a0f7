# The job's own wrapper: it writes down its process, runs the program in $JOB, and writes the status last and whole. It
# runs the program in its own shell: the process that systemd tells to stop is then the one that begins the steps. sh
# runs a trap when the running step has ended. The status gets its room on the disk at the beginning, since a step may
# fill it.
umask 077
mkdir "$JOB/begun" 2>/dev/null || exit 0
exec >>"$JOB/log" 2>&1 </dev/null
cd /
stopping=
finish() {
  trap - EXIT
  [ -z "${work_dir:-}" ] || unwork "$work_dir"
  [ -z "$stopping" ] || exit 0
  echo "$1" >>"$JOB/status.new" && sync "$JOB/log" "$JOB/status.new" && mv "$JOB/status.new" "$JOB/status"
  sync "$JOB"
  exit 0
}
trap 'finish $?' EXIT
trap 'stopping=yes' TERM INT HUP
: >"$JOB/status.new"; fallocate -n -l 4096 "$JOB/status.new" 2>/dev/null
{ echo $$ >"$JOB/pid.new" && mv "$JOB/pid.new" "$JOB/pid"; } || exit 1
# shellcheck source=/dev/null
. "$JOB/run"
