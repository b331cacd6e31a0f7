# Exits with 1 if `holders` other than the services $ours use the GPU, or services are `bound` to these: work that started
# since the probe. This is checked before anything is stopped, since jobs end with Fabric Manager.
: "${ours:?}"
busy=
for p in $(holders); do
  read -r name 2>/dev/null <"/proc/$p/comm" || continue
  service "$p"
  eval "set -- $ours"
  # shellcheck disable=SC2154  # of holders.sh
  for own; do [ "$unit" != "$own.service" ] || continue 2; done
  busy="$busy $name ($p)"
done
eval "set -- $ours"
for bound in $([ -n "$busy" ] || bound "$@"); do
  case $bound in *.service) ;; *) continue ;; esac  # nobody works in a socket or a timer
  for own; do [ "$bound" != "$own.service" ] || continue 2; done
  busy="$busy $bound"
done
if [ -n "$busy" ]; then echo "hostwright: the kernel module nvidia is in use by:$busy"; exit 1; fi
