# Stops those of the $services that run or are about to, in their order; $stopped names them. The sockets and timers that
# systemd stops along with them are named in $units, until `returned.sh` starts them again. Needs `bound`.
: "${services:?}"
: "${units:?}"
stopped=
eval "set -- $services"
along=$(bound "$@" | sed '/\.service$/d')
[ -z "$along" ] || echo "$along" >>"$units"
for unit; do
  if systemctl -q is-active "$unit" || [ "$(systemctl show --value -p ActiveState "$unit")" = activating ]; then
    systemctl stop "$unit"; stopped="$stopped $unit"
  fi
done
