# Sources in deb822, stanza by stanza: those that hold one of the texts $texts (outside of comments), and that apt reads.
# stanzas look FILE...: FILE:LINE for the line of each such stanza that holds it.
# stanzas off FILE: its text without them. The stanza gets `Enabled: no`; where other repositories are in it, too, only
# the addresses with a text go. Each line of before stands as a comment after $mark above the line that replaces it.
# stanzas ours FILE...: FILE:LINE for each stanza with a text in which a line is replaced so; stanzas on FILE: its text
# with the lines of before.
# shellcheck disable=SC2016  # the program is awk's
: "${texts:?}"
: "${mark:?}"
program='
  function has(line,  t) { for (t in text) if (index(line, text[t])) return 1; return 0 }
  function old(line) { out(mark line) }
  function out(line) { if (how == "off" || how == "on") print line }
  function restored(  i, skip, was) {
    for (i = 1; i <= n; i++) {
      if (index(l[i], mark) == 1) {
        was = substr(l[i], length(mark) + 1)
        if (was != "" && !(skip && was ~ /^URIs: /)) print was  # not what stood there between two sets of texts
        skip = 1
      }
      else if (skip && l[i] ~ /^(Enabled: no|URIs: )/) skip = 0
      else { print l[i]; skip = 0 }
    }
  }
  function stanza(  i, field, value, hit, inside, rest, some, words, w, count, disabled, enabled, ours, all, last) {
    for (i = 1; i <= n; i++) {
      if (has(l[i])) all = l[i]
      if (index(l[i], mark) == 1) ours = l[i]
      if (l[i] ~ /^#/) continue
      if (l[i] ~ /^[A-Za-z-]+:/) {
        field = tolower(substr(l[i], 1, index(l[i], ":") - 1)); value = substr(l[i], index(l[i], ":") + 1)
        if (field == "enabled") {
          enabled = i; gsub(/[ \t]/, "", value)
          disabled = tolower(value) ~ /^(no|false|without|off|disable|0)$/
        }
      } else value = l[i]
      if (field == "uris") {
        uris[i]; last = i; count = split(value, words, /[ \t]+/)
        for (w = 1; w <= count; w++) if (words[w] != "") { if (has(words[w])) some = 1; else rest = rest " " words[w] }
      } else if (has(l[i])) inside = 1
      if (has(l[i]) && hit == "") hit = l[i]
    }
    if (how == "look" && hit != "" && !disabled) print name ":" hit
    if (how == "ours" && all != "" && ours != "") print name ":" ours
    if (how == "on" && all != "" && ours != "") restored()
    else if (how != "off" || hit == "" || disabled) for (i = 1; i <= n; i++) out(l[i])
    else if (some && rest != "" && !inside) {
      for (i = 1; i <= n; i++) if (i in uris) { old(l[i]); if (i == last) out("URIs:" rest) } else out(l[i])
    } else {
      for (i = 1; i <= n; i++) if (i == enabled) { old(l[i]); out("Enabled: no") } else out(l[i])
      if (!enabled) { old(""); out("Enabled: no") }
    }
    n = 0; split("", uris)
  }
  BEGIN { count = split(ENVIRON["TEXTS"], text, "\n"); for (t in text) if (text[t] == "") delete text[t] }
  FNR == 1 { if (NR > 1) stanza(); name = FILENAME }
  /^[ \t]*$/ { stanza(); out($0); next }
  { l[++n] = $0 }
  END { stanza() }
'
stanzas() (
  how=$1; shift
  TEXTS=$(eval "set -- $texts"; printf '%s\n' "$@")
  export TEXTS
  awk -v how="$how" -v mark="$mark" "$program" "$@"
)
