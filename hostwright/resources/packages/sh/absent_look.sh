# `along NAME` for each package that apt removes beside those whose name matches one of the shell patterns in $patterns and
# none in $keep. Needs along.sh. $matching is both as an expression of Perl's: a host without such packages is asked no more.
# $verb: purge or remove.
# shellcheck disable=SC2016,SC2086  # dpkg's own expressions; $patterns, $keep and $names are words
: "${patterns:?}"
: "${keep?}"
: "${matching:?}"
: "${verb:?}"
grep -qP -e "^Package: $matching" /var/lib/dpkg/status || exit 0
set -f
names=$(dpkg-query -W -f='${db:Status-Status} ${binary:Package}\n' $patterns 2>/dev/null |
  sed -n '/^\(not-installed\|config-files\) /!s/^[^ ]* //p' |
  grep -vxF -e "${keep:+$(dpkg-query -W -f='${binary:Package}\n' $keep 2>/dev/null)}")
[ -z "$names" ] || along "$verb" $names | sed 's/^/along /'
