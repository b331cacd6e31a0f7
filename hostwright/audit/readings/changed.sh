# What changed since the release record was written: packages, and files of /etc and of administrators, the latest first.
# Files that a changed package brought are not told beside it, nor the links of System V's init.
: "${record:?}"
: "${most:?}"
[ -f "$record" ] || exit 0
since=$(date -r "$record" '+%Y-%m-%d %H:%M:%S')
packages=$(
  for log in /var/log/dpkg.log.1 /var/log/dpkg.log; do
    [ ! -r "$log" ] || awk -v since="$since" '
      $1 " " $2 <= since { next }
      $3 ~ /^(install|upgrade|remove|purge)$/ {
        action[++count] = $4 "\t" $3 "\t" $6
        last[$4] = count
        before[$4] = ($5 "" == $6) ? "" : $5 ""
      }
      # where a script of the package fails, dpkg goes back to the version that was there
      $3 == "status" && $4 == "installed" && $6 == before[$5] { delete action[last[$5]] }
      END { for (n = 1; n <= count; n++) if (n in action) print action[n] }' "$log"
  done | tail -n "$most"
)
[ -z "$packages" ] || printf '%s\n' "$packages" | sed 's/^/package\t/'
theirs=$(
  printf '%s\n' "$packages" | cut -f 1 | sort -u | while IFS= read -r name; do
    case $name in '' | */*) continue ;; esac
    cat "/var/lib/dpkg/info/$name.list" "/var/lib/dpkg/info/${name%%:*}.list" 2>/dev/null
  done | grep '^/etc/'
)
find /etc/ /usr/local/bin/ /usr/local/lib/ -xdev -path '/etc/rc?.d' -prune -o \
  -newercm "$record" '(' -type f -o -type l ')' -printf '%C@\tfile\t%p\n' 2>/dev/null |
  sort -rn | cut -f 2- | grep -vxF -- "$(printf '%s\n' "$theirs" | sed 's/^/file\t/')" | head -n "$most"
