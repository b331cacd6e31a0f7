# keep_aside PATH [NEW]: keeps what somebody put in the place PATH of a file of ours, before it goes, at
# $aside/DATE/PATH, as a hard link where it can be one. An empty file, a link, and what has the bytes of the file NEW
# are not kept; nothing is kept twice.
: "${aside:?}"
keep_aside() {
  if [ -L "$1" ] || [ ! -s "$1" ] || [ ! -f "$1" ]; then return 0; fi
  if [ -f "${2-}" ] && cmp -s -- "$1" "$2"; then return 0; fi  # a pipe in its place would never end
  place=$aside/$(date +%Y-%m-%d)$1
  if cmp -s -- "$1" "$place"; then return 0; fi
  mkdir -p -- "${place%/*}"
  cp -alT --backup=numbered -- "$1" "$place" 2>/dev/null || cp -aT --backup=numbered -- "$1" "$place"
}
