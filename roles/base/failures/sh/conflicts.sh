# The conflicts of apt's last run of dpkg, at most eight, each with the line before it, which names the archive; and
# "script WORDS; LINES" of each script that failed when a package was to be removed: what it wrote last, and dpkg's two
# lines, which name package, script and status. Then what packages' own scripts fail over: "dep FILE" of a file that says
# MODULES=dep to initramfs-tools, and "grub DISK" or "grub DISK gone" of each disk that debconf has for grub-pc; and
# "pin FILE:LINE PRIORITY NAMES" of the packages that apt's preferences forbid.
tail -c 262144 /var/log/apt/term.log 2>/dev/null | awk '
  /^Log started: / { count = 0; words = "" }
  / trying to overwrite / { lines[++count] = last $0 }
  /(pre|post)-removal (package )?script (subprocess )?returned error exit status/ {
    lines[++count] = substr("script " words "; " last $0, 1, 600) }
  { sub(/\r$/, "") }
  !/^dpkg: |^\(Reading database|^Processing triggers|^Removing |^Purging configuration/ { words = $0 }
  { last = $0 }
  END { for (n = 1; n <= count && n <= 8; n++) print lines[n] }'
grep -lsE '^[[:space:]]*MODULES=["'"'"']?dep' /etc/initramfs-tools/initramfs.conf /etc/initramfs-tools/conf.d/* |
  sed 's/^/dep /; 4q'
awk '/^Name: / { ours = $2 == "grub-pc/install_devices" }
  ours && sub(/^Value: /, "") {
    n = split($0, disk, /[ ,]+/)
    for (i = 1; i <= n; i++) if (disk[i] ~ /^\/dev\// && shown++ < 8) print disk[i]
  }' /var/cache/debconf/config.dat 2>/dev/null |
  while read -r disk; do if [ -e "$disk" ]; then echo "grub $disk"; else echo "grub $disk gone"; fi; done
set --
for file in /etc/apt/preferences /etc/apt/preferences.d/*; do
  case ${file##*/} in hostwright-* | *[!A-Za-z0-9_.-]*) continue ;; *.*) [ "${file%.pref}" != "$file" ] || continue ;; esac
  if [ -f "$file" ]; then set -- "$@" "$file"; fi
done
[ $# -eq 0 ] || awk '
  FNR == 1 || /^[ \t]*$/ { names = "" }
  tolower($1) == "package:" { names = substr($0, index($0, ":") + 1) }
  tolower($1) == "pin-priority:" && $2 < 0 && names != "" { print "pin", FILENAME ":" FNR, $2, names }' "$@" | head -n 20
exit 0
