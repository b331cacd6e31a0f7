: "${kernel=}"  # given by the program
module=$(bounded modinfo -k "$kernel" -F version nvidia); say module "$module"
value=
if [ -n "$module" ]; then
  for built in "/var/lib/dkms/nvidia/${module%%
*}/$kernel"/*/module; do [ ! -d "$built" ] || value=$module; done
fi
say 'dkms module' "$value"
value=gone
for card in /sys/bus/pci/drivers/nouveau/*:* /sys/bus/pci/drivers/nova*/*:*; do [ ! -e "$card" ] || value=bound; done
say nouveau $value
