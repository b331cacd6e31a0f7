# Writes a release record, $record, to $path: beside it and renamed, so that whoever reads sees the former record or this
# one, never half of one. Where $name is not empty, the former record is kept under it in $folder. A stack has one former
# record, its last; ls sorts by time, since the names begin with it, and what comes from place $first on is removed.
# The record's own time is when all that it names was last found as desired: it stays where $whole is empty.
: "${path:?}"
: "${record:?}"
: "${name?}"
: "${folder:?}"
: "${first:?}"
: "${whole?}"
set -eu
umask 022
mkdir -p "${path%/*}"
if [ -n "$name" ] && [ -f "$path" ]; then
  mkdir -p "$folder"
  rm -f "$folder"/*"-${name##*-}"
  cp -p "$path" "$folder/$name.new"
  sync "$folder/$name.new"
  mv -f "$folder/$name.new" "$folder/$name"
  # shellcheck disable=SC2010,SC2012  # our own names: a time, a dash, hexadecimal digits
  ls -1r "$folder" | grep '[.]json$' | tail -n "+$first" | while read -r old; do rm -f "$folder/$old"; done
fi
printf '%s\n' "$record" >"$path.new"
[ -n "$whole" ] || touch -r "$path" "$path.new" 2>/dev/null || touch -d @0 "$path.new"
sync "$path.new"
mv -f "$path.new" "$path"
