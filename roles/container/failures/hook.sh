# Prints the path of $hook; "gone PATH" of each runtime in Docker's $settings whose program is not there; "group NAME"
# where the group of $socket does not exist.
: "${hook:?}"
: "${settings:?}"
: "${socket:?}"
command -v "$hook" || true  # not installed is an answer
tr '\n' ' ' <"$settings" 2>/dev/null | head -c 65536 | grep -oE '"path"[[:space:]]*:[[:space:]]*"[^"]{1,200}"' |
  while read -r program; do
    program=${program%'"'} program=${program##*'"'}
    command -v "$program" >/dev/null || echo "gone $program"
  done
group=$(systemctl show -p SocketGroup --value -- "$socket" 2>/dev/null) || true  # a host without systemd has no such socket
[ -z "$group" ] || getent group "$group" >/dev/null || echo "group $group"
exit 0
