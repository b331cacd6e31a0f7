# Prints what joins the cards beside the PCI classes that hostwright reads: `nvswitch NAME` for each switch that the
# loaded driver has, `bridge SLOT` for each ConnectX bridge of an NVLink 5 board, `lacks MODULE` for each module that
# such a board needs and that is not loaded, `missing MODULE` for one that the kernel's packages lack, and `unread` where
# a bridge's product data did not come in time.
: "${first:?}"
: "${modules:?}"
for switch in /proc/driver/nvidia-nvswitch/devices/*; do
  [ ! -e "$switch" ] || echo "nvswitch ${switch##*/}"
done
blackwell=
set --
for device in /sys/bus/pci/devices/*; do
  read -r vendor <"$device/vendor" || continue
  case $vendor in
  0x10de)
    { read -r class <"$device/class" && read -r id <"$device/device"; } || continue
    case $class in 0x03*) [ "$((id))" -lt "$((first))" ] || blackwell=yes ;; esac
    ;;
  0x15b3) [ ! -e "$device/vpd" ] || set -- "$@" "$device/vpd" ;;
  esac
done
# Only cards with NVLink 5 have such bridges: product data comes slowly, four bytes at a time.
status=0 bridges=
[ -z "$blackwell" ] || [ $# -eq 0 ] || bridges=$(timeout -k 1 20 grep -als SW_MNG -- "$@") || status=$?
[ "$status" -lt 124 ] || echo unread
for file in $bridges; do
  device=${file%/vpd}
  echo "bridge ${device##*/}"
done
[ -z "$bridges" ] || for module in $modules; do
  [ -d "/sys/module/$module" ] || { echo "lacks $module" && modprobe -qn "$module"; } || echo "missing $module"
done
:
