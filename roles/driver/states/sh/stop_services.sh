# Stops the running ones of the $services, in their order; $stopped names them.
: "${services:?}"
stopped=
eval "set -- $services"
for unit; do
  if systemctl -q is-active "$unit"; then systemctl stop "$unit"; stopped="$stopped $unit"; fi
done
