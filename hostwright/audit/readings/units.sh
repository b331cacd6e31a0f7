# Properties of systemd units, which systemctl prints unit by unit with an empty line between. $properties are their
# names with commas between, $labels the names of the units in lines.
: "${properties:?}"
: "${units:?}"
: "${labels:?}"
eval "set -- $units"
shown=$(bounded systemctl show -p "$properties" -- "$@")
eval "set -- $labels"
while IFS= read -r line; do
  case $line in
    '') [ $# -eq 0 ] || shift ;;
    *=*) say "unit $1 ${line%%=*}" "${line#*=}" ;;
  esac
done <<END
$shown
END
