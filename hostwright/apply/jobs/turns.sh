# Who gets a lock of the host next, where several jobs wait for it: the one that has most to come behind it.
# acquire LOCK RANK: takes the lock, with the descriptor 7; $waited_ms is then how long that took. Exits with 1 where it
# was not free within $lock_wait_s. RANK is a number of digits; a higher one is more urgent.
# release: gives back what is held. It is kept between steps, as long as nobody more urgent waits for it.
# Neither lock nor ticket is for the programs that a step starts (7>&- 8>&-): a daemon that stays would keep them.
#
# Who waits has a ticket in $lock_dir/LOCK.queue, a file named RANK.JOB that is locked (flock) as long as its process
# lives. The lock itself goes to whoever the kernel gives it; who then finds a ticket with a higher rank gives it back
# and waits until that one has had its turn. So nobody looks twice at the same thing, and a job that was killed holds
# up nobody. A ticket that cannot be written costs its job no more than its rank.
: "${lock_dir:?}"
: "${lock_wait_s:?}"
held=

release() {
  exec 7>&-
  held=
}

acquire() {
  waited_ms=0
  [ "$held" != "$1" ] || urgent "$1" "$2" >/dev/null || return 0
  release
  asked=$(uptime_ms)
  # Whoever can read a file can lock it, and keep every role waiting.
  (umask 077; mkdir -p "$lock_dir/$1.queue"; : >>"$lock_dir/$1.lock"; chmod 600 "$lock_dir/$1.lock")
  { command exec 7>>"$lock_dir/$1.lock"; } || return 1
  ticket=$lock_dir/$1.queue/$2.${JOB##*/}
  { command exec 8>"$lock_dir/$1.queue/.${JOB##*/}" && flock -n 8 &&
    mv -f -- "$lock_dir/$1.queue/.${JOB##*/}" "$ticket"; } 2>/dev/null || :
  in_turn "$1" "$2"; status=$?
  rm -f -- "$ticket"
  exec 8>&-
  # shellcheck disable=SC2034  # runner.sh tells it
  waited_ms=$(( $(uptime_ms) - asked ))
  [ "$status" -eq 0 ] || { release; return 1; }
  held=$1
}

in_turn() {
  while :; do
    left=$(( lock_wait_s - ($(uptime_ms) - asked) / 1000 ))
    flock -w "$(( left > 0 ? left : 1 ))" 7 || return 1
    [ "$left" -gt 0 ] || return 0
    first=$(urgent "$1" "$2") || return 0
    flock -u 7
    { flock -s -w "$left" 9; } 9<"$first" || :
  done 2>/dev/null
}

# The ticket of somebody who is more urgent than RANK and waits. Tickets of processes that are gone are removed.
urgent() {
  for other in "$lock_dir/$1.queue"/*; do
    theirs=${other##*/}
    [ "${theirs%%.*}" -gt "$2" ] || continue
    if { flock -n -s 9; } 9<"$other"; then rm -f -- "$other"; else [ ! -e "$other" ] || { echo "$other"; return 0; }; fi
  done 2>/dev/null
  return 1
}
