# Docker gets the images of an archive. Docker's own words on what it loaded count, whatever was read in the archive
# before: if these are other names than those of $images (ID NAME), or a name leads to another image, all names are put
# back to where they led before. $end is how much of the archive, unpacked, its files are; where $manifest is not empty,
# it follows them as manifest.json.
: "${archive:?}"
: "${packed?}"
: "${end:?}"
: "${manifest?}"
: "${images:?}"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export LC_ALL=C # for sort and comm
eval "set -- $images"
for pair; do printf '%s %s\n' "${pair#* }" "${pair%% *}"; done | sort >"$work/announced"
names_now() { # NAME ID of each
  docker image ls --no-trunc --format '{{.Repository}}:{{.Tag}} {{.ID}}' >"$work/listed"
  grep -v '<none>' "$work/listed" | sort || :
}
unpacked() { if [ -n "$packed" ]; then gzip -dc -- "$archive"; else cat -- "$archive"; fi; }
load() {
  [ -n "$manifest" ] || { docker load -q -i "$archive"; return; }
  printf '%s' "$manifest" >"$work/manifest.json"
  { unpacked 2>/dev/null | head -c "$end"; tar -C "$work" -cf - manifest.json; } | docker load -q
}
names_now >"$work/before"
status=0
load >"$work/said" || status=$?
cat "$work/said"
names_now >"$work/after"
sed -n 's/^Loaded image: //p' "$work/said" | sort -u >"$work/loaded"
cut -d ' ' -f 1 "$work/announced" >"$work/names"
if [ "$status" -eq 0 ] && cmp -s "$work/names" "$work/loaded" && [ -z "$(comm -23 "$work/announced" "$work/after")" ]; then
  rm -rf -- "${archive%/*}"
  exit 0
fi

# An archive in the form of Docker before 1.10 is loaded without a word, and a load that fails may have begun.
[ -s "$work/loaded" ] && [ "$status" -eq 0 ] || comm -13 "$work/before" "$work/after" | cut -d ' ' -f 1 >"$work/loaded"
id_of() { awk -v name="$2" '$1 == name { print $2 }' "$work/$1"; } # LIST NAME
sort -u "$work/names" "$work/loaded" >"$work/touched"
while read -r name; do
  now=$(id_of after "$name") former=$(id_of before "$name") wanted=$(id_of announced "$name")
  if [ -z "$wanted" ]; then
    echo "hostwright: error: Docker has ${now:-no image} as $name since the load, and images.push found no such name in" \
      "the archive: the load was undone; do not use this archive"
  elif [ "$now" != "$wanted" ] && [ "$status" -eq 0 ]; then
    echo "hostwright: error: Docker has ${now:-no image} as $name after the archive, which holds $wanted"
  fi
  [ "$now" != "$former" ] || continue
  [ -z "$now" ] || docker image rm -- "$name" >/dev/null || :
  [ -z "$former" ] || docker tag "$former" "$name" || :
done <"$work/touched"
exit 1
