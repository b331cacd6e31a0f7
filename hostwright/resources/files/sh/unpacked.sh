# What is no longer as the record $record of an archive says: the record's first line, then each file or link that
# differs, as recorded after "<" and as it is, where it is, after ">". No answer without a record, or with an empty one.
# $line: find's format of a line. Of a link only its target is compared: its size and time say nothing.
# shellcheck disable=SC2016,SC2086  # the programs are awk's and the other shell's; a name a word
: "${record:?}"
: "${line:?}"
compare='
  function state() { return $1 == "l" ? $1 FS $5 : $0 }
  now { present[$4] = $0; states[$4] = state(); next }
  FNR == 1 { print; next }
  { rows++ }
  states[$4] == state() { next }
  { print "<" $0 }
  $4 in present { print ">" present[$4] }
  END { exit !rows }
'
newline='
' tab='	'
differing() {
  [ -e "$record" ] || return 1
  text=$(cat "$record")
  IFS=$newline
  set -f
  if [ "${#text}" -lt 10000 ]; then # a hundred files: the time that `set` takes grows with the square of their number
    set --
    for row in $text; do
      case $row in *"$tab"*) row=${row#*"$tab"*"$tab"*"$tab"} && set -- "$@" "${row%%"$tab"*}" ;; *) seal=$row ;; esac
    done
    [ $# -eq 0 ] || now=$(find "$@" -maxdepth 0 -printf "$line")
    if [ $# -gt 0 ] && [ "$seal$newline$now" = "$text" ]; then printf '%s\n' "$seal"; return 0; fi
  fi
  sed 1d "$record" | cut -f4 | xargs -r -d '\n' sh -c 'format=$1; shift; find "$@" -maxdepth 0 -printf "$format"' find "$line" |
    awk -F '\t' "$compare" now=1 - now= "$record"
}
differing
