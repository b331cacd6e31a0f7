# shellcheck shell=sh
# Properties of systemd units, which systemctl prints unit by unit with an empty line between. $shown is what it printed,
# "$@" are the names of the units in lines.
: "${shown?}"
while IFS= read -r line; do
  case $line in
    '') [ $# -eq 0 ] || shift ;;
    *=*) say "unit $1 ${line%%=*}" "${line#*=}" ;;
  esac
done <<END
$shown
END
