# What the next upgrade of everything does to packages of a driver, a line each: "moves NAME OLD NEW" or "removes NAME".
# Where no driver is installed as packages this costs no fork. apt, which takes a second, runs only where one is not held.
# shellcheck disable=SC2086  # names are patterns
: "${names:?}"
for list in /var/lib/dpkg/info/libcuda1*.list /var/lib/dpkg/info/libnvidia-*.list none; do
  case $list in *'*'* | */libnvidia-container*) ;; *) break ;; esac
done
[ "$list" != none ] || exit 0
set -f
dpkg-query -W -f='${db:Status-Want} ${db:Status-Status} ${Package}\n' $names 2>/dev/null |
  grep -v -e '^hold ' -e ' libnvidia-container' | grep -q ' installed ' || exit 0
LC_ALL=C timeout -k 1 20 apt-get -q -s -o Debug::NoLocking=true -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
  dist-upgrade 2>/dev/null | sed -n -e '/nvidia\|libcuda1\|libnv\|cuda-drivers/!d' \
  -e 's/^Inst \([^ ]*\) \[\([^]]*\)\] (\([^ ]*\) .*/moves \1 \2 \3/p' -e 's/^Remv \([^ ]*\).*/removes \1/p'
exit 0
