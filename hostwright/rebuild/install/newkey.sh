# Makes the host's next key beside the one that its seed gave it, and prints the public half.
# What an interrupted rotation left there is made anew.
: "${key:?}"
: "${seeded:?}"
set -eu
umask 077
if [ "$(cut -d' ' -f1,2 "$key.pub")" != "$seeded" ]; then
  echo "$key is not the key of its seed" >&2
  exit 1
fi
rm -f "$key.next" "$key.next.pub"
ssh-keygen -q -t ed25519 -N '' -C '' -f "$key.next"
cat "$key.next.pub"
