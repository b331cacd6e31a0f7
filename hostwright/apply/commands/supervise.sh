# Runs the command in $words, in a session of its own with nothing to read, and ends it with all that it started when
# $limit_s seconds are over, or when standard input ends: the controller wants no more of it, or is gone. A terminal
# would end it by SIGHUP; without one, sshd lets a command run on for ever. How it ended is said to the controller on
# standard error, behind $nonce.
#
# Where $root is empty the command must not become root: not as a login user who is root already, and not by sudo or
# another setuid program, which the kernel then gives nothing (no_new_privs).
: "${nonce:?}"
: "${words:?}"
: "${limit_s:?}"
: "${grace_s:?}"
: "${root?}"
exec 3<&0 </dev/null
say() { printf '\n%s %s\n' "$nonce" "$1" >&2; exit 0; }
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
eval "set -- $words"
if [ -z "$root" ]; then
  [ "$(id -u)" != 0 ] || say root
  if command -v setpriv >/dev/null; then
    set -- setpriv --no-new-privs -- "$@"
  elif [ "$(uname -m)" = x86_64 ] && command -v perl >/dev/null; then
    # Ubuntu 18.04 has no setpriv: prctl(PR_SET_NO_NEW_PRIVS, 1)
    # shellcheck disable=SC2016  # its own
    set -- perl -e 'syscall(157, 38, 1, 0, 0, 0) == 0 or die; exec { $ARGV[0] } @ARGV; print STDERR "$ARGV[0]: $!\n"; exit 127' -- "$@"
  else
    say setpriv
  fi
fi
cut=
trap 'cut=yes' USR1
setsid -- "$@" 3<&- & command=$!
# shellcheck disable=SC2016  # its own
setsid -- sh -c '
  timeout --foreground "$1" cat >/dev/null
  kill -s USR1 "$2"
  kill -s TERM -- "-$3"; sleep "$4"; kill -s KILL -- "-$3"
' watch "$limit_s" "$$" "$command" "$grace_s" <&3 >/dev/null 2>&1 & watch=$!
exec 3<&-
{ wait "$command"; status=$?; } 2>/dev/null # on which the shell would write "Terminated"
if [ -n "$cut" ]; then
  wait "$watch" # until nothing is left
  say cut
fi
kill -s KILL -- "$watch" "-$watch" 2>/dev/null
say "$status"
