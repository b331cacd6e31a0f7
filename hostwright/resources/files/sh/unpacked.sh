# What is no longer as the record $record of an archive says: the record's first line, then each file or link that
# differs, as recorded after "<" and as it is, where it is, after ">". No answer without a record, or with an empty one.
# $line: find's format of a line. Of a link only its target is compared: its size and time say nothing.
# shellcheck disable=SC2016  # the program is awk's, and the other shell's
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
[ -e "$record" ] || exit 1
sed 1d "$record" | cut -f4 | xargs -r -d '\n' sh -c 'format=$1; shift; find "$@" -maxdepth 0 -printf "$format"' find "$line" |
  awk -F '\t' "$compare" now=1 - now= "$record"
