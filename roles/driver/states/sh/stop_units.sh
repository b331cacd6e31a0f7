# Stops the system's units whose processes hold the GPU, or that are `bound` to such a one or to the services $ours (systemd
# would stop them along, and nobody start them again); those with Restart= too, which would come back in the middle:
# a killed process is a failure to systemd, and a unit that fails too often is not started any more. Their names are kept
# in $units, on a filesystem that a reboot empties, until `returned.sh` starts them again. Our own job is not among them, nor the services $ours.
: "${units:?}"
: "${ours:?}"
eval "set -- $ours"
held=$(for p in $(holders); do
  service "$p"
  # shellcheck disable=SC2154  # of holders.sh
  case " $* " in *" ${unit%.service} "*) continue ;; esac
  case $unit in - | hostwright-*) ;; *) if systemctl -q is-active "$unit"; then echo "$unit"; fi ;; esac
done)
# shellcheck disable=SC2086  # a name each
for unit in $held $(bound "$@" $held); do
  case " $* " in *" ${unit%.service} "*) ;; *) echo "$unit" ;; esac
done | sort -u >"$units.new"
if [ -s "$units.new" ]; then
  cat "$units.new" >>"$units"
  xargs -d '\n' timeout 120 systemctl stop -- <"$units.new" || true  # those that do not end are killed
fi
rm -f "$units.new"
