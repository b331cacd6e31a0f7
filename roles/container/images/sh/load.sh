# Docker gets the images of an archive, and each of $images (ID NAME) must be what the archive says. $end is how much of
# the archive, unpacked, its files are; where $manifest is not empty, it follows them as manifest.json. What a name led
# to before is put back where the image is another one, which goes.
: "${archive:?}"
: "${packed?}"
: "${end:?}"
: "${manifest?}"
: "${images:?}"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
id_of() { docker image inspect --format '{{.Id}}' "$1" 2>/dev/null || :; }
eval "set -- $images"
for pair; do
  printf '%s %s\n' "${pair#* }" "$(id_of "${pair#* }")"
done >"$work/before"
unpacked() { if [ -n "$packed" ]; then gzip -dc -- "$archive"; else cat -- "$archive"; fi; }
if [ -n "$manifest" ]; then
  printf '%s' "$manifest" >"$work/manifest.json"
  { unpacked 2>/dev/null | head -c "$end"; tar -C "$work" -cf - manifest.json; } | docker load -q
else
  docker load -q -i "$archive"
fi
status=0
for pair; do
  id=${pair%% *} name=${pair#* }
  now=$(id_of "$name")
  [ "$now" != "$id" ] || continue
  status=1
  echo "hostwright: error: Docker has ${now:-no image} as $name after the archive, which holds $id"
  former=$(sed -n "s|^$name ||p" "$work/before")
  [ -z "$now" ] || [ "$now" = "$former" ] || docker image rm -- "$name" || :
  [ -z "$former" ] || docker tag "$former" "$name" || :
done
[ "$status" -eq 0 ] || exit 1
rm -rf -- "${archive%/*}"
