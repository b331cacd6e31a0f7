# Unloads the driver's modules; if that fails, it names the `holders`, restarts the services that were $stopped for it
# and by $returned the other units, and exits with 1. $modules are in the order in which the installer itself unloads them (kernel.c).
: "${modules:?}"
: "${returned:?}"
eval "set -- $modules"
for module; do
  [ -d "/sys/module/$module" ] || continue
  if modprobe -r "$module" || rmmod "$module"; then continue; fi
  echo "hostwright: the kernel module $module is in use by:"
  for p in $(holders); do echo "  $p $(cat "/proc/$p/comm" 2>/dev/null)"; done
  # shellcheck disable=SC2154  # of stop_services.sh
  for unit in $stopped; do systemctl start "$unit" || true; done
  eval "$returned"
  exit 1
done
