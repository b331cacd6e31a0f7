# unmasked ROWS DIRECTORY…: those of the rows "FILE:TEXT" whose file no file of its name in an earlier directory hides, as
# modprobe.d(5) and udev(7) read their directories.
unmasked() {
  rows=$1 newline='
'
  shift
  set -f
  IFS=$newline
  for row in $rows; do
    unset IFS
    file=${row%%:*}
    for directory in "$@"; do
      place=$directory/${file##*/}
      if [ "$place" = "$file" ]; then printf '%s\n' "$row"; break; fi
      if [ -e "$place" ] || [ -L "$place" ]; then break; fi
    done
  done
  unset IFS
}
