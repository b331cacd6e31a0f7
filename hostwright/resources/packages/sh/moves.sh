# What apt would do to installed packages in order to install these, a line each: "moves NAME OLD NEW" or "removes NAME".
# Nothing where all are here, which costs no fork, or where apt does not know them yet.
# shellcheck disable=SC2086  # names are words
: "${words?}"
missing=''
for word in $words; do
  # A pattern reads the whole directory: only where it is needed.
  [ ! -e "/var/lib/dpkg/info/${word%%=*}.list" ] || continue
  for list in "/var/lib/dpkg/info/${word%%=*}":*.list; do [ ! -e "$list" ] || continue 2; done
  missing="$missing $word"
done
[ -z "$missing" ] || LC_ALL=C timeout -k 1 20 apt-get -q -s -o Debug::NoLocking=true -o Dir::Cache::pkgcache= \
  -o Dir::Cache::srcpkgcache= -o APT::Get::AutomaticRemove=false --no-install-recommends --allow-change-held-packages \
  --allow-downgrades install $missing 2>/dev/null | sed -n \
  -e 's/^Inst \([^ ]*\) \[\([^]]*\)\] (\([^ ]*\) .*/moves \1 \2 \3/p' -e 's/^Remv \([^ ]*\).*/removes \1/p'
