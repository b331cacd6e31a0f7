# Lines of udev rules about NVIDIA's devices that remove one or give it to another driver, as "FILE:NUMBER:TEXT", but for
# files whose name an earlier directory has too: udev does not read those (udev(7)).
set --
for directory in /etc /run /usr/local/lib /usr/lib /lib; do set -- "$@" "$directory/udev/rules.d"; done
rows=$(
  cd / && grep -anHsE -m 20 '^[^#]*0x10de.*\{(remove|driver_override)\}' /etc/udev/rules.d/*.rules \
    /run/udev/rules.d/*.rules /usr/local/lib/udev/rules.d/*.rules /usr/lib/udev/rules.d/*.rules /lib/udev/rules.d/*.rules
)
set -f
newline='
'
IFS=$newline
for row in $rows; do
  unset IFS
  file=${row%%:*}
  for directory in "$@"; do
    place=$directory/${file##*/}
    if [ "$place" = "$file" ]; then printf '%s\n' "$row"; break; fi
    if [ -e "$place" ] || [ -L "$place" ]; then break; fi
  done
done
exit 0
