# The driver's device files, and what the loaded driver has them be. Only find is a process.
# device NAME: a device file; link TARGET: of /dev/char. find's own lines (-ls) tell mode and numbers of what is in /dev.
# major NAME NUMBER: as the kernel gives it; loaded MODULE; card MINOR; ModifyDeviceFiles: and DeviceFileMode: of the module;
# cap MINOR FILE: of a GPU instance (MIG); setuid: any user's program has the files of nvidia-uvm and -modeset made.
for device in /dev/nvidia* /dev/nvidia-caps/*; do [ ! -c "$device" ] || echo "device ${device#/dev/}"; done
while read -r major name; do case $name in nvidia*) echo "major $name $major" ;; esac; done </proc/devices
for module in nvidia nvidia_uvm nvidia_modeset; do [ ! -d "/sys/module/$module" ] || echo "loaded $module"; done
for card in /proc/driver/nvidia/gpus/*/information; do
  [ -e "$card" ] || continue
  minor=
  while read -r key field value; do
    case $key-$field in Device-Minor:) minor=$value ;; GPU-Excluded:) [ "$value" != Yes ] || { minor=; break; } ;; esac
  done <"$card"
  [ -z "$minor" ] || echo "card $minor"
done
if [ -e /proc/driver/nvidia/params ]; then
  while read -r key value; do
    case $key in ModifyDeviceFiles: | DeviceFileMode:) echo "$key $value" ;; esac
  done </proc/driver/nvidia/params
fi
for access in /proc/driver/nvidia/capabilities/gpu*/mig/gi*/access /proc/driver/nvidia/capabilities/gpu*/mig/gi*/ci*/access; do
  [ -e "$access" ] || continue
  while read -r key value; do [ "$key" != DeviceFileMinor: ] || echo "cap $value $access"; done <"$access"
done
[ ! -u /usr/bin/nvidia-modprobe ] || echo setuid
set -- /dev/nvidia*
[ -e "$1" ] || set --
find /dev/char "$@" -maxdepth 1 \( -lname '*nvidia*' -printf 'link %l\n' \) -o \( -path '/dev/nvidia*' -ls \) 2>/dev/null
:
