# Starts the units again that stop_units.sh stopped, as it kept them in $units, and says what became of each. A unit that
# failed too often is not started before that is reset. $start is "no" where there is no driver any more.
: "${units:?}"
: "${start:?}"
if [ -s "$units" ]; then
  sort -u "$units" | while read -r unit; do
    if [ "$start" = yes ]; then
      systemctl reset-failed "$unit" 2>/dev/null || true  # it had not failed
      if timeout 60 systemctl start "$unit" && systemctl -q is-active "$unit"; then
        echo "hostwright: note: $unit was stopped for the driver and runs again"
        continue
      fi
    fi
    echo "hostwright: note: $unit was stopped for the driver and is down: systemctl status $unit"
  done
  rm -f "$units"
fi
