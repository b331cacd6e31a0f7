# FILE:LINE for each line that we disabled in an apt source, of those that hold one of the texts, or in the stanza of
# one; and for each line of a .sources file with one of them that an earlier Hostwright gave the ending .disabled.
# $patterns: grep's options that name the texts. Needs stanzas.
: "${patterns:?}"
: "${disabled:?}"
: "${files:?}"
eval "set -- $patterns"
find -L /etc/apt/sources.list /etc/apt/sources.list.d -maxdepth 1 -type f -name '*.list' \
  -exec grep -HsF "$@" {} + | grep -F ":$disabled"
for path in /etc/apt/sources.list.d/*.sources; do
  if [ -f "$path" ]; then stanzas ours "$path"; fi
done
for path in /etc/apt/sources.list.d/*.sources.disabled; do
  if [ -f "$path" ] && [ -e "$files${path%.disabled}.written" ]; then grep -HsF "$@" "$path"; fi
done
exit 0
