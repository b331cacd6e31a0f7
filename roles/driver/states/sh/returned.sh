# Starts the units and containers again that stop_units.sh and stop_containers.sh stopped, as they are named in $units,
# and says what became of each. A unit that failed too often is not started before that is reset. $start is "no" where
# there is no driver any more. Needs `personal`.
: "${units:?}"
: "${start:?}"
start_unit() {
  systemctl reset-failed "$1" 2>/dev/null || true  # it had not failed
  timeout 60 systemctl start "$1" && systemctl -q is-active "$1"
}
start_container() {
  timeout 60 "$1" start "$2" >/dev/null && [ "$(timeout 10 "$1" inspect --format '{{.State.Running}}' "$2")" = true ]
}
if [ -s "$units" ]; then
  # sockets first: one is not started while its service runs
  { grep '\.socket$' "$units" || true; cat "$units"; } | awk '!named[$0]++' | while IFS=/ read -r unit id name; do
    if [ "$unit" = person ]; then
      again="personal $id start $name" look="as $id, systemctl --user status $name" name="$name of $id"
    elif [ -n "$id" ]; then
      again="start_container $unit $id" look="$unit logs $name" name="container $name"
    else
      again="start_unit $unit" look="systemctl status $unit" name=$unit
    fi
    # shellcheck disable=SC2086  # a command and its words, which have no blanks
    if [ "$start" = yes ] && $again; then
      echo "hostwright: note: $name was stopped for the driver and runs again"
    else
      echo "hostwright: note: $name was stopped for the driver and is down: $look"
    fi
  done
  rm -f "$units"
fi
