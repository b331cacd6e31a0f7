# Makes the host's next key beside the one that its seed gave it, and prints the public half. What was made is kept: runs
# that do this at once, or one after the other was killed, are all told of the same key. Where that key is in its place
# by now, it is printed from there: the comment of its public half names the seed's key that it replaced.
: "${key:?}"
: "${seeded:?}"
set -eu
umask 077
exec 9<"${key%/*}"
if ! flock -w 30 9; then
  echo "another run is changing $key" >&2
  exit 1
fi
public() { ssh-keygen -y -P '' -f "$1" </dev/null 2>/dev/null | cut -d' ' -f1,2; }
after="after-${seeded#* }"
have="$(public "$key")"
if [ "$have" = "$seeded" ]; then
  made=
  if [ -e "$key.next" ]; then made="$(public "$key.next")"; fi
  if [ -z "$made" ] || [ "$(cat "$key.next.pub" 2>/dev/null)" != "$made $after" ]; then
    rm -f "$key.next" "$key.next.pub" "$key.making" "$key.making.pub"
    ssh-keygen -q -t ed25519 -N '' -C "$after" -f "$key.making"
    mv -f "$key.making.pub" "$key.next.pub"
    mv -f "$key.making" "$key.next"
  fi
  cat "$key.next.pub"
  exit 0
fi
for public in "$key.next.pub" "$key.pub"; do
  if [ "$(cat "$public" 2>/dev/null)" = "$have $after" ]; then
    cat "$public"
    exit 0
  fi
done
echo "$key is not the key of its seed" >&2
exit 1
