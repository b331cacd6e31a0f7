# allow FILE PROGRAM: what the sed program leaves of a file of modprobe.d is what modprobe reads. A file outside /etc stays
# as it is: one of its name in /etc/modprobe.d is read in its place.
: "${etc:?}"
: "${mark:?}"
set -eu
allow() {
  if [ ! -e "$1" ]; then return 0; fi
  own=$etc/${1##*/}
  mkdir -p -- "$etc"
  {
    if [ "$1" != "$own" ]; then printf '%sin place of %s\n' "$mark" "$1"; fi
    sed "$2" -- "$1"
  } >"$own.hostwright-new"
  sync -- "$own.hostwright-new"
  chmod 644 -- "$own.hostwright-new"
  mv -f -- "$own.hostwright-new" "$own"
}
