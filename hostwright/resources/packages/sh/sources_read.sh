# FILE:LINE for each line of an apt source with one of the texts; of .sources files those in stanzas that apt reads.
# $patterns: grep's options that name the texts. Needs stanzas.
: "${patterns:?}"
eval "set -- $patterns"
grep -rHsF --exclude='*.sources' "$@" /etc/apt/sources.list /etc/apt/sources.list.d
for path in /etc/apt/sources.list.d/*.sources; do
  if [ -f "$path" ]; then stanzas look "$path"; fi
done
exit 0
