# Puts an operator's lock on the host, the record in $text, or takes it off where $text is empty; whole and on the disk, or
# not at all. Where $seen is not empty and the lock is not the one with that checksum any more ("absent": none), nothing
# is changed and the exit status is $moved.
: "${state:?}"
: "${run:?}"
: "${moved:?}"
: "${seen?}"
: "${text?}"
set -eu
umask 077
install -d -m 755 "$state" "$run"
exec 9>>"$run/operator.lock"
flock -w 10 9 || { echo 'another operator is changing its lock' >&2; exit 1; }
now=absent
if [ -e "$state/lock.json" ]; then now=$(sha256sum <"$state/lock.json"); fi
if [ -n "$seen" ] && [ "$seen" != "${now%% *}" ]; then exit "$moved"; fi
umask 022
if [ -n "$text" ]; then
    printf '%s\n' "$text" >"$state/lock.json.new"
    sync "$state/lock.json.new"
    mv -f "$state/lock.json.new" "$state/lock.json"
else
    rm -f "$state/lock.json"
fi
sync "$state"
