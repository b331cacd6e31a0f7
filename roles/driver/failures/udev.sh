# Lines of udev rules about NVIDIA's devices that remove one or give it to another driver, as "FILE:NUMBER:TEXT". It needs
# `unmasked`.
set --
for directory in /etc /run /usr/local/lib /usr/lib /lib; do set -- "$@" "$directory/udev/rules.d"; done
rows=$(
  cd / && grep -anHsE -m 20 '^[^#]*0x10de.*\{(remove|driver_override)\}' /etc/udev/rules.d/*.rules \
    /run/udev/rules.d/*.rules /usr/local/lib/udev/rules.d/*.rules /usr/lib/udev/rules.d/*.rules /lib/udev/rules.d/*.rules
)
unmasked "$rows" "$@"
exit 0
