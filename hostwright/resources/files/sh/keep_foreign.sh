# In $inside, unpacked: what lies in the place of one of these files or links in $into, and is not named by the record
# before ($record). A copy of that goes below $aside, a hard link where it can be one; of what has the same bytes only
# before the first time ($mark says that there was one), when it is a copy that somebody made by hand.
: "${inside:?}"
: "${into:?}"
: "${record:?}"
: "${aside:?}"
: "${mark:?}"
same() {
  if [ -L "$1" ] || [ -L "$2" ]; then [ "$(readlink -- "$1")" = "$(readlink -- "$2")" ]; else cmp -s -- "$1" "$2"; fi
}
find "$inside" -mindepth 1 -maxdepth 1 ! -type d -printf '%P\n' | while read -r name; do
  path=$into/$name
  if [ ! -L "$path" ] && [ ! -f "$path" ]; then continue; fi
  if [ -e "$record" ] && sed 1d "$record" | cut -f4 | grep -qxF -e "$path"; then continue; fi
  if [ -e "$mark" ] && same "$path" "$inside/$name"; then continue; fi
  if [ "$path" -ef "$aside$path" ] && [ ! -L "$path" ]; then continue; fi
  mkdir -p -- "$aside$into"
  cp -alT --backup=numbered -- "$path" "$aside$path" 2>/dev/null ||
    cp -aT --backup=numbered -- "$path" "$aside$path"
done
