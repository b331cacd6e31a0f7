# Lines of modprobe.d about NVIDIA's modules, as "FILE:NUMBER:TEXT", but for files whose name an earlier directory has too:
# modprobe does not read those. Then "kernel WORD" for each word of the kernel's command line that keeps modules away.
: "${directories:?}"
set --
for directory in $directories; do set -- "$@" "$directory"/*.conf; done
rows=$(grep -anHsE -m 50 '^[[:space:]]*(alias|blacklist|install|options)[[:space:]]+nvidia' "$@")
set -f
newline='
'
IFS=$newline
for row in $rows; do
  unset IFS
  file=${row%%:*}
  for directory in $directories; do
    place=$directory/${file##*/}
    if [ "$place" = "$file" ]; then printf '%s\n' "$row"; break; fi
    if [ -e "$place" ] || [ -L "$place" ]; then break; fi
  done
done
read -r line </proc/cmdline
for word in $line; do
  case $word in module_blacklist=* | modprobe.blacklist=*) printf 'kernel %s\n' "$word" ;; esac
done
exit 0
