# cannot_load: reads what a failed modprobe or installer printed, and says why this kernel takes no module at all where
# that is so. "Operation not permitted" alone is also its answer to an unsigned module while it is locked down.
: "${process:?}"
: "${disabled:?}"
cannot_load() {
  grep -q 'Operation not permitted' || return 0
  capabilities=$(sed -n 's/^CapEff:[[:space:]]*//p' "$process")
  if [ "$(cat "$disabled" 2>/dev/null)" = 1 ]; then
    echo "hostwright: no kernel module can be loaded on this host: kernel.modules_disabled is set, until it reboots"
  elif [ "$((0x${capabilities:-0} >> 16 & 1))" = 0 ]; then
    echo "hostwright: no kernel module can be loaded on this host: root lacks CAP_SYS_MODULE, as in a container"
  fi
}
