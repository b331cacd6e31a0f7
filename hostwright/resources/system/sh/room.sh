# "there" and the path for each of $paths that exist, their words between tabs; and unless that is each of them, a line for
# each of $directories: the directory; the nearest path to it that is there; that path's kind ("directory", or another of
# stat's; "broken link"); number, mount point and options of the filesystem on which it really lies; free KiB; inodes, and
# how many of them are free ("-": unknown). Last "initramfs" and the bytes of the largest.
: "${directories:?}"
: "${paths?}"
eval "set -- $paths"
complete=yes
for path; do if [ -e "$path" ]; then printf 'there\t%s\n' "$path"; else complete=; fi; done
if [ -n "$complete" ]; then set --; else eval "set -- $directories"; fi
for directory; do
  there=$directory
  until [ -e "$there" ] || [ -L "$there" ]; do there=${there%/*}; there=${there:-/}; done
  kind=$(stat -L -c %F -- "$there") || kind='broken link'
  # shellcheck disable=SC2046  # findmnt -r and df print words without blanks
  set -- $(findmnt -n -r -o MAJ:MIN,TARGET,OPTIONS -T "$(readlink -m -- "$there")" | tail -n 1)
  [ $# -eq 3 ] || set -- - - -
  # shellcheck disable=SC2046
  set -- "$@" $(timeout -k 1 3 df -k --output=avail,itotal,iavail -- "$there" | tail -n 1)
  [ $# -eq 6 ] || set -- "$1" "$2" "$3" - - -
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$directory" "$there" "$kind" "$@"
done
[ -n "$complete" ] || printf 'initramfs\t%s\n' "$(stat -L -c %s -- /boot/initrd.img-* | sort -n | tail -n 1)"
:
