# apt's messages when it reads its sources alone. If a repository is configured with two keys, then every entry of the lists.
said=$(
  timeout -k 1 5 apt-get -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Dir::State::Lists=/var/empty/ \
    -o Dir::State::status=/dev/null indextargets 2>&1 >/dev/null
)
status=$?
[ -z "$said" ] || printf '%s\n' "$said"
case $said in
  *"option Signed-By"*)
    grep -anHsE -m 20 '^[[:space:]]*(deb|URIs:)' /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
      /etc/apt/sources.list.d/*.sources
    ;;
esac
[ "$status" -lt 124 ] || exit "$status"
