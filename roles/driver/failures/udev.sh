# Lines that take a PCI device off its bus or give it to another driver at each boot, as "FILE:NUMBER:TEXT": of udev rules,
# tmpfiles.d, units that are enabled, rc.local and cron, of bbswitch's options, and what driverctl recorded, where its rule is
# there. Then "card SLOT" for each of NVIDIA's display controllers. It needs `unmasked`.
set --
for directory in /etc /run /usr/local/lib /usr/lib /lib; do set -- "$@" "$directory/udev/rules.d"; done
rows=$(
  cd / && grep -anHsE -m 20 '^[^#]*\{(remove|driver_override)\}' /etc/udev/rules.d/*.rules \
    /run/udev/rules.d/*.rules /usr/local/lib/udev/rules.d/*.rules /usr/lib/udev/rules.d/*.rules /lib/udev/rules.d/*.rules
)
unmasked "$rows" "$@"
set +f
grep -anHsE -m 20 '^[^#]*(/driver_override|driverctl.* set-override|/drivers/[a-z_-]+/(un)?bind|/remove|bbswitch .*load_state=0)' \
  /etc/rc.local /etc/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf /etc/tmpfiles.d/*.conf /usr/lib/tmpfiles.d/*.conf \
  /etc/systemd/system/*.wants/*.service /etc/cron.d/* | cut -c1-500
for rule in /lib/udev/rules.d/*driverctl*.rules; do
  [ -e "$rule" ] || continue
  for file in /etc/driverctl.d/*; do
    slot=${file##*/}
    if read -r driver <"$file"; then printf '%s:1:driverctl set-override %s %s\n' "$file" "${slot#pci-}" "$driver"; fi
  done 2>/dev/null
done
for device in /sys/bus/pci/devices/*; do
  vendor='' class=''
  read -r vendor <"$device/vendor"
  read -r class <"$device/class"
  case $vendor:$class in 0x10de:0x03*) echo "card ${device##*/}" ;; esac
done 2>/dev/null
exit 0
