# "file pid seconds name" of each process that holds one of the $locks: /proc/locks names processes and inodes. Other
# filesystems have the same inode numbers, so the process must also have this file open.
: "${locks:?}"
eval "set -- $locks"
stat -c '%i %n' -- "$@" | awk 'NR == FNR { name[$1] = $2; next }
  $2 != "->" && $4 == "WRITE" { n = split($6, a, ":"); if (a[n] in name) print name[a[n]], $5 }' - /proc/locks |
  while read -r f p; do
    find "/proc/$p/fd" -lname "$f" | grep -q . || continue
    read -r name <"/proc/$p/comm" && echo "$f $p $(ps -o etimes= -p "$p" | tr -d ' ') $name"
  done; exit 0
