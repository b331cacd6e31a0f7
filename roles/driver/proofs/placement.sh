# On which NUMA node every card is, and whether a network adapter is on the same, in the lines of a proof.
# HOSTWRIGHT_SYSFS and HOSTWRIGHT_PROC are other roots than /sys and /proc, for tests.
sysfs=${HOSTWRIGHT_SYSFS:-/sys}
proc=${HOSTWRIGHT_PROC:-/proc}

row() {  # NAME VALUE DEVICE: the value is a number or a word of ours
  printf '{"measure": "%s", "value": %s, "unit": "", "device": "%s"}\n' "$1" "$2" "$3"
}
number() {  # FILE: the whole number in it, else -1
  value=$(cat "$1" 2>/dev/null)
  case $value in '' | *[!0-9]*) echo -1 ;; *) echo "$value" ;; esac
}
told() {  # NAME FILE: what the driver says of a card, as plain characters; of one that it has not started, GPU-????????-…
  sed -n "s/^$1:[[:space:]]*//p" "$2" 2>/dev/null | grep -v '?' | head -n 1 | tr -cd 'A-Za-z0-9 _.:-' | head -c 80
}

nodes=0
for folder in "$sysfs"/devices/system/node/node[0-9]*; do [ ! -d "$folder" ] || nodes=$((nodes + 1)); done
row "numa nodes" "$nodes" cpu
adapters=" "
for folder in "$sysfs"/class/net/*; do
  [ -e "$folder/device/numa_node" ] || continue  # not on a bus: loopback, bridges, virtual pairs
  adapters="$adapters$(number "$folder/device/numa_node") "
done
cards=0
for folder in "$sysfs"/bus/pci/devices/*; do
  case $(cat "$folder/vendor" "$folder/class" 2>/dev/null | tr -d '\n') in 0x10de0x0300* | 0x10de0x0302*) ;; *) continue ;; esac
  bus=${folder##*/}
  uuid=$(told "GPU UUID" "$proc/driver/nvidia/gpus/$bus/information")
  model=$(told Model "$proc/driver/nvidia/gpus/$bus/information")
  device="${uuid:-GPU $bus} (${model:-of which the driver does not tell the model})"
  node=$(number "$folder/numa_node")
  case $adapters in *" $node "*) near='"yes"' ;; *) near='"no"' ;; esac
  row "numa node" "$node" "$device"
  row "network adapter on its node" "$near" "$device"
  cards=$((cards + 1))
done
[ "$cards" -gt 0 ] || row "numa node" null "no GPU"
echo '{"end": true}'
