# Properties of systemd units, which systemctl prints unit by unit, separated by empty lines. $properties are their names,
# separated by commas; $labels the names of the units in the output.
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
