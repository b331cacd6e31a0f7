# `gone INFO.list:PATH` for each file below $root that a package put there and that is not there, `packaged …` for each
# library of one of the directories $libraries, one a line; then `found KIND SIZE PATH TARGET` for each library there.
# The shell splits the list in memory: `read` in a loop would cost a system call for each byte of it.
# shellcheck disable=SC2013,SC2086  # as above; $libraries are split at new lines
: "${root:?}"
: "${libraries:?}"
newline='
'
IFS=$newline
set -f
for entry in $(grep -rsF --include='*.list' -e "$root/" /var/lib/dpkg/info); do
  path=${entry#*.list:}
  [ -e "$path" ] || [ -L "$path" ] || echo "gone $entry"
  case $newline$libraries$newline in
    *"$newline${path%/*}$newline"*) case $path in *.so*) echo "packaged $entry" ;; esac ;;
  esac
done
find $libraries -maxdepth 1 -name '*.so*' -printf 'found %y %s %p %l\n'
