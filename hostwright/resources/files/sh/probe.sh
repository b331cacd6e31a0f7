# Prints words about a path, each on a line of its own; nothing that the host could choose is printed.
# $path: the path, $written: its mark, $kept: its kept copy, $made: the mark of its directory, $ours: what ours is ("link
# TARGET", "file SHA256"), $leftovers: what may have been left beside it.
: "${path:?}"
: "${written:?}"
: "${kept:?}"
: "${made:?}"
: "${ours?}"
: "${leftovers:?}"
: "${origin:?}"
[ ! -e "$origin/packages" ] || echo record
[ ! -e "$written" ] || echo written
if [ -L "$path" ]; then echo there; now="link $(readlink -- "$path")"
elif [ -f "$path" ]; then echo there; now="file $(sha256sum <"$path" | cut -d ' ' -f 1)"
elif [ -e "$path" ]; then echo other; now=other
else now=; fi
[ -z "$ours" ] || [ "$now" != "$ours" ] || echo ours
if [ -L "$kept" ]; then echo kept; [ "$now" != "link $(readlink -- "$kept")" ] || echo same
elif [ -e "$kept" ]; then
  echo kept
  if [ "$(stat -c '%f %u %g %y' -- "$path")" = "$(stat -c '%f %u %g %y' -- "$kept")" ] && cmp -s "$path" "$kept"; then
    echo same
  fi
elif [ -n "$now" ] && dpkg-query -S -- "$path" >/dev/null 2>&1; then echo owned; fi
eval "set -- $leftovers"
for file; do [ ! -e "$file" ] || echo left; done
for file in "$path".before-hostwright.*; do if [ -e "$file" ] || [ -L "$file" ]; then echo aside; fi; done
if [ -e "$made" ] && [ -d "${path%/*}" ] && [ -z "$(ls -A -- "${path%/*}")" ]; then echo empty; fi
