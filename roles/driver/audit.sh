: "${kernel=}"  # given by the program
module=
for name in nvidia nvidia-current-open nvidia-current; do  # Debian's have names of their own on the disk
  module=$(bounded modinfo -k "$kernel" -F version "$name"); [ -z "$module" ] || break
done
say module "$module"
value=
if [ -n "$module" ]; then
  for built in /var/lib/dkms/nvidia*/"${module%%
*}/$kernel"/*/module; do [ ! -d "$built" ] || value=$module; done
fi
say 'dkms module' "$value"
value=gone
for card in /sys/bus/pci/drivers/nouveau/*:* /sys/bus/pci/drivers/nova*/*:*; do [ ! -e "$card" ] || value=bound; done
say nouveau $value
