# What changed since the release record was written: packages, and files of /etc and of administrators, the latest first.
# Files that a changed package brought are not told beside it, nor the links of System V's init.
: "${record:?}"
: "${most:?}"
[ -f "$record" ] || exit 0
since=$(date -r "$record" '+%Y-%m-%d %H:%M:%S')
set --
for log in /var/log/dpkg.log.1 /var/log/dpkg.log; do [ ! -r "$log" ] || set -- "$@" "$log"; done
packages=
[ $# -eq 0 ] || packages=$(awk -v since="$since" -v most="$most" '
  $1 " " $2 <= since { next }
  $3 ~ /^(install|upgrade|remove|purge)$/ {
    action[++count] = "package\t" $4 "\t" $3 "\t" $6
    last[$4] = count
    before[$4] = ($5 "" == $6) ? "" : $5 ""
  }
  # where a script of the package fails, dpkg goes back to the version that was there
  $3 == "status" && $4 == "installed" && $6 == before[$5] { delete action[last[$5]] }
  END {
    for (first = count + 1; first > 1 && kept < most; ) if (--first in action) kept++
    for (n = first; n <= count; n++) if (n in action) print action[n]
  }' "$@")
theirs=
if [ -n "$packages" ]; then
  printf '%s\n' "$packages"
  set --
  while IFS='	' read -r _ name _; do
    case $name in '' | */*) continue ;; esac
    for list in "/var/lib/dpkg/info/$name.list" "/var/lib/dpkg/info/${name%%:*}.list"; do
      [ ! -r "$list" ] || set -- "$@" "$list"
    done
  done <<END
$packages
END
  [ $# -eq 0 ] || theirs=$(sed -n 's,^/etc/,file\t&,p' "$@")
fi
find /etc/ /usr/local/bin/ /usr/local/lib/ -xdev -path '/etc/rc?.d' -prune -o \
  -newercm "$record" '(' -type f -o -type l ')' -printf '%C@\tfile\t%p\n' 2>/dev/null | sort -rn | cut -f 2- |
  if [ -n "$theirs" ]; then grep -vxF -- "$theirs" | head -n "$most"; else head -n "$most"; fi
