# What mending dpkg would do, a line each: `unpack NAME` or `gone NAME` for a package that was cut off while it was
# unpacked and whose archive apt's lists have or do not have; `leave NAME` for each whose name matches a shell pattern in
# $leaving, where one of these is not in order; then `Inst NAME`, `Remv NAME` of apt's own simulation, or `unknown
# MESSAGE`. Nothing where dpkg is in order, which costs one look into its database.
# shellcheck disable=SC2016,SC2086  # dpkg's own expressions; $apt_options are words
: "${apt_options:?}"
: "${leaving?}"
grep -Eq '^Status: [^ ]+ (reinstreq|[^ ]+ (half-|unpacked|triggers-))' /var/lib/dpkg/status ||
  { set -- /var/lib/dpkg/updates/*; [ -e "$1" ]; } || exit 0
# Who holds dpkg's lock is not done yet: it was not interrupted so far, and beside a dpkg that unpacks, apt's simulation
# would keep whoever asks waiting for seconds.
if frontend=$(stat -c %i /var/lib/dpkg/lock-frontend 2>/dev/null) && grep -q "POSIX.*:$frontend " /proc/locks; then
  echo 'unknown dpkg is at work right now'
  exit 0
fi
work=$(mktemp -d -p /run 2>/dev/null || mktemp -d) || exit 1
trap 'rm -rf -- "$work"' EXIT
names='' order=right
set -f
# shellcheck disable=SC2254  # the patterns are patterns
while [ -n "$leaving" ] && read -r status flag name; do
  for pattern in $leaving; do
    case ${name%:*} in $pattern) ;; *) continue ;; esac
    case $flag/$status in */not-installed | ok/config-files) break ;; ok/installed) ;; *) order=wrong ;; esac
    names="$names $name"
    break
  done
done <<END
$(dpkg-query -W -f='${db:Status-Status} ${db:Status-Eflag} ${binary:Package}\n')
END
set +f
[ "$order" = wrong ] || names=''
gone=''
for name in $(dpkg-query -W -f='${db:Status-Eflag} ${binary:Package}\n' | sed -n 's/^reinstreq //p'); do
  case "$names " in *" $name "*) continue ;; esac
  version=$(dpkg-query -W -f='${Version}' "$name")
  if apt-get -q --print-uris download "$name=$version" >/dev/null 2>&1; then
    echo "unpack $name"
  else
    echo "gone $name"
    gone="$gone ${name%:*} "
  fi
done
# dpkg's database as it is after that: without marks of what was cut off, which apt would refuse to think about.
awk -v gone="$gone" '
  /^Package: / { going = index(gone, " " $2 " ") }
  /^Status: / { sub(/ reinstreq /, " ok "); if (going) $0 = "Status: deinstall ok config-files"; else sub(/half-(installed|configured)/, "unpacked") }
  { print }' /var/lib/dpkg/status >"$work/status"
simulate() {
  LC_ALL=C apt-get $apt_options -o Dir::State::status="$work/status" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
    -s -f --no-install-recommends --allow-change-held-packages "$@" 2>&1
}
# apt purges nothing while something else lacks a package; mending brings that first.
simulated=$([ -n "$names" ] && simulate purge $names) || simulated=$(simulate install) ||
  printf 'unknown %s\n' "$(printf '%s\n' "$simulated" | sed -n 's/^E: //p' | head -n 1)"
[ -z "$names" ] || printf 'leave %s\n' $names
printf '%s\n' "$simulated" | sed -n 's/^\(Inst\|Remv\|Purg\) \([^ ]*\).*/\1 \2/p' | sed 's/^Purg/Remv/' |
  while read -r kind name; do
    case "$kind $names " in Remv*" $name "* | Remv*" $name:"*) ;; *) echo "$kind $name" ;; esac
  done
