# What systemd knows of $units, as `systemctl show` prints it, and behind it, for each that $rows names with files of its
# own, whether its process began after these last changed, told by the second: `old UNIT`, also where it does not run,
# else `ask UNIT`. One call of systemctl for all of them costs less than one of busctl, which alone tells parts of a
# second. All $files are those of all rows.
# shellcheck disable=SC2086,SC3012  # a unit, a path a word; every sh of a distribution compares words
: "${units:?}"
: "${properties:?}"
: "${files?}"
: "${rows?}"
newline='
'
TZ=UTC
export TZ
shown=$(systemctl show -p "$properties" -- $units) || exit 2
printf '%s\n\n' "$shown"
[ -n "$rows" ] || exit 0
times=$(stat -L -c '%n %y' -- $files 2>/dev/null)
left=$units known='' runs='' began=''
# The next of $left is the one of which all has been said.
tell() {
  unit=${left%% *} left=${left#* } say=''
  for row in $rows; do
    [ "${row%% *}" = "$unit" ] || continue
    say=old
    for time in $times; do
      path=${time%% *} time=${time#* }
      case "$row " in *" $path "*) [ -z "$runs" ] || [ "${time%.*}" \< "$began" ] || say=ask ;; esac
    done
  done
  [ -z "$say" ] || echo "$say $unit"
}
IFS=$newline
set -f
for line in $shown; do
  name=${line%%=*} value=${line#*=}
  case "$known " in *" $name "*) tell; known='' runs='' began='' ;; esac
  known="$known $name"
  case $line in
    MainPID=[1-9]*) runs=yes ;;
    ExecMainStartTimestamp=*' UTC') began=${value#* } began=${began% *} ;;
  esac
done
tell
