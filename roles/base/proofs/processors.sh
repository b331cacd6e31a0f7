# How the processors run and where the memory lies, in the lines of a proof. $1 is the file of its arguments, which it
# does not need. HOSTWRIGHT_SYSFS is another root than /sys, for tests.
system=${HOSTWRIGHT_SYSFS:-/sys}/devices/system

row() {  # NAME VALUE UNIT: a value of words is quoted, one of digits is a number
  case $2 in
  '' | *[!0-9]*) value=\"$(printf '%s' "$2" | tr -cd 'A-Za-z0-9 _.,:-' | head -c 200)\" ;;
  *) value=$2 ;;
  esac
  printf '{"measure": "%s", "value": %s, "unit": "%s", "device": "cpu"}\n' "$1" "$value" "$3"
}

governors=$(cat "$system"/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort | uniq -c | awk '
  { text = text (text ? ", " : "") (NR > 1 || many ? $1 " " : "") $2; first = first ? first : $1 " " $2; kinds++ }
  END { if (kinds > 1) sub(/^[^,]*/, first, text); print text }')
row governor "${governors:-not told}" ""
driver=$(cat "$system/cpu/cpu0/cpufreq/scaling_driver" 2>/dev/null)
row "frequency driver" "${driver:-not told}" ""

# Processors whose highest frequency was set below what they can, in whole percent of it
cap=$(for folder in "$system"/cpu/cpu[0-9]*/cpufreq; do
  can=$(cat "$folder/cpuinfo_max_freq" 2>/dev/null) may=$(cat "$folder/scaling_max_freq" 2>/dev/null)
  case $can,$may in *[!0-9,]* | ,* | *,) continue ;; esac
  [ "$can" -eq 0 ] || echo $((may * 100 / can))
done | sort -n | head -n 1)
[ -z "$cap" ] || row "frequency limit" "$cap" "%"

nodes=0 empty=0
for folder in "$system"/node/node[0-9]*; do
  [ -d "$folder" ] || continue
  nodes=$((nodes + 1))
  kilobytes=$(awk '/MemTotal:/ { print $4; exit }' "$folder/meminfo" 2>/dev/null)
  list=$(cat "$folder/cpulist" 2>/dev/null)
  [ "${kilobytes:-0}" != 0 ] || [ -z "$list" ] || empty=$((empty + 1))
done
row "memory nodes" "$nodes" ""
row "nodes without memory" "$empty" ""
echo '{"end": true}'
