# Puts the next key in the place of the present one and lets sshd read it. Where no sshd keeps its number, each connection
# has an sshd of its own (socket activation), which reads the key itself. Can be run again where it was interrupted: the
# private half is moved first, and a public half without it is what is left to do.
: "${key:?}"
: "${pid:?}"
set -eu
exec 9<"${key%/*}"
if ! flock -w 30 9; then
  echo "another run is changing $key" >&2
  exit 1
fi
if [ -e "$key.next" ]; then mv -f "$key.next" "$key"; fi
if [ -e "$key.next.pub" ]; then
  chmod 644 "$key.next.pub"
  mv -f "$key.next.pub" "$key.pub"
fi
sync "$key" "$key.pub" "${key%/*}"
if [ -s "$pid" ]; then kill -HUP "$(cat "$pid")"; fi
