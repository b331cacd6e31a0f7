# Defines alive(): whether the job $1 runs. It is of this boot, without a status, and its process lives and is really it,
# since process ids come again: a process of ours, with the job's wrapper in its command line, which anybody's could
# have. One without a process runs when its unit does: it is just being started. Otherwise it never began.
: "${jobs:?}"
alive() {
  [ -d "$jobs/$1" ] && [ ! -e "$jobs/$1/status" ] || return 1
  if [ -s "$jobs/$1/pid" ]; then
    [ "$(cat "$jobs/$1/boot" 2>/dev/null)" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 1
    process=/proc/$(cat "$jobs/$1/pid")
    # shellcheck disable=SC3067  # every sh of a distribution has it
    [ -O "$process" ] && grep -qsF -- "$jobs/$1/wrapper" "$process/cmdline"
  else
    [ -d /run/systemd/system ] && systemctl is-active --quiet "hostwright-$1.service"
  fi
}
