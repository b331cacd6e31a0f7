# keep_aside PATH [NEW]: what somebody put in the place PATH of a file of ours, before it goes: kept at $aside/DATE/PATH, as a
# hard link where it can be one. Nothing is kept of an empty file, of a link, of what has the bytes of NEW, and twice.
: "${aside:?}"
keep_aside() {
  if [ -L "$1" ] || [ ! -s "$1" ] || [ ! -f "$1" ] || cmp -s -- "$1" "${2:-/dev/null}"; then return 0; fi
  place=$aside/$(date +%Y-%m-%d)$1
  if cmp -s -- "$1" "$place"; then return 0; fi
  mkdir -p -- "${place%/*}"
  cp -alT --backup=numbered -- "$1" "$place" 2>/dev/null || cp -aT --backup=numbered -- "$1" "$place"
}
