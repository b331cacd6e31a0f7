# The last lines that units logged, and before them those of failed units that they need: "NAMED UNIT: line".
: "${units:?}"
: "${lines:?}"
: "${width:?}"
: "${needed:?}"
set -f
logged() {
  timeout -k 1 5 journalctl -q -u "$2" -n "$lines" -o cat --no-pager </dev/null | cut -c "1-$width" |
    while IFS= read -r line; do printf '%s %s: %s\n' "$1" "$2" "$line"; done
}
eval "set -- $units"
for named; do
  needs=$(systemctl show -p Requires -p Requisite -p BindsTo -- "$named" | cut -d = -f 2- | tr '\n' ' ')
  case $needs in
    *[!\ ]*) # without a name, all failed units of the host would be listed
      # shellcheck disable=SC2086 # one word each
      systemctl list-units --state=failed --plain --no-legend --no-pager -- $needs | head -n "$needed" |
        while read -r unit _; do logged "$named" "$unit"; done ;;
  esac
  logged "$named" "$named"
done
exit 0
