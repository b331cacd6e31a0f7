# What apt would do to installed packages in order to install these, a line each: "moves NAME OLD NEW" or "removes NAME".
# Nothing where all are here, which costs no fork, or where apt does not know them yet: $source, if any, is the source
# list that carries them, and may not be there.
# apt takes half a second to read its lists. What it keeps of them is used by all but root, for whom apt would renew it.
# shellcheck disable=SC2086  # names and options are words
: "${words?}"
: "${source?}"
missing=''
for word in $words; do
  # A pattern reads the whole directory: only where it is needed.
  [ ! -e "/var/lib/dpkg/info/${word%%=*}.list" ] || continue
  for list in "/var/lib/dpkg/info/${word%%=*}":*.list; do [ ! -e "$list" ] || continue 2; done
  missing="$missing $word"
done
[ -z "$source" ] || [ -e "$source" ] || missing=''
kept=''
[ ! -w /var/cache/apt ] || kept='-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache='
[ -z "$missing" ] || LC_ALL=C timeout -k 1 20 apt-get -q -s -o Debug::NoLocking=true $kept \
  -o APT::Get::AutomaticRemove=false --no-install-recommends --allow-change-held-packages \
  --allow-downgrades install $missing 2>/dev/null | sed -n \
  -e 's/^Inst \([^ ]*\) \[\([^]]*\)\] (\([^ ]*\) .*/moves \1 \2 \3/p' -e 's/^Remv \([^ ]*\).*/removes \1/p'
