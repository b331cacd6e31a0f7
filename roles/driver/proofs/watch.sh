# A line a card: UUID, temperature, and the temperature at which a proof stops, with tabs between: $margin degrees below
# the one at which the card slows down. A card that tells how many degrees are left (T.Limit) tells no temperature for
# that; one that tells neither stops at $otherwise.
: "${margin:?}"
: "${otherwise:?}"
{
  timeout -k 1 4 nvidia-smi --query-gpu=pci.bus_id,uuid --format=csv,noheader
  timeout -k 1 5 nvidia-smi -q -d TEMPERATURE
} 2>/dev/null | head -c 262144 | awk -v margin="$margin" -v otherwise="$otherwise" '
  function tell() {
    if (bus == "" || heat !~ /^[0-9]+$/ || !(bus in uuid)) return
    limit = slowdown ~ /^[0-9]+$/ ? slowdown - margin : left ~ /^-?[0-9]+$/ ? heat + left - margin : otherwise
    printf "%s\t%d\t%d\n", uuid[bus], heat, limit
  }
  /^[0-9A-Fa-f]+:.*, GPU-/ { split($0, part, ", "); uuid[part[1]] = part[2]; next }
  /^GPU [0-9A-Fa-f]+:/ { tell(); bus = $2; heat = slowdown = left = "" }
  /GPU Current Temp/ { heat = $(NF - 1) }
  /GPU Slowdown Temp/ { slowdown = $(NF - 1) }
  /GPU T.Limit Temp/ { left = $(NF - 1) }
  END { tell() }'
