: "${kernel=}"  # given by the program
module=$(bounded modinfo -k "$kernel" -F version nvidia); say module "$module"
value=
if [ -n "$module" ]; then
  for one in "/var/lib/dkms/nvidia/${module%%
*}/$kernel"/*/module; do [ ! -d "$one" ] || value=$module; done
fi
say 'dkms module' "$value"
