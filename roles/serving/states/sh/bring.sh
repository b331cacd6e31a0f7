# Unpack a version's archive among the versions of a model, after comparing every file with its checksum. A version
# appears whole or not at all; its files are root's, and only read by the server.
: "${name:?}"
: "${version:?}"
: "${digest:?}"
: "${archive:?}"
: "${state:?}"
models=$state/$name/models
new=$models/.$version.new
undo() { rm -rf -- "$new"; }
mkdir -p -- "$state"
[ -d "$state/$name" ] || mkdir -m 711 -- "$state/$name"
umask 022
mkdir -p -- "$models/$name" "$models/versions"
chmod 755 -- "$models" "$models/$name" "$models/versions"
rm -rf -- "$new"
mkdir -- "$new"
said=$(tar -C "$new" --no-same-owner --no-same-permissions -xf "$archive" 2>&1) ||
  fail "its archive could not be unpacked: $(printf '%s' "$said" | tr -s '[:space:]' ' ' | tail -c 300)"
[ "$(sha256sum <"$new/sha256sums")" = "$digest  -" ] || fail "the archive holds other files than it should"
(cd "$new/files" && sha256sum --quiet -c ../sha256sums) || fail "a file is not what its checksum says"
[ "$(find "$new/files" -type f | wc -l)" -eq "$(wc -l <"$new/sha256sums")" ] || fail "the archive holds more files"
rm -rf -- "${models:?}/$name/$version" # of a time when its checksums were not written yet
mv -- "$new/files" "$models/$name/$version"
mv -f -- "$new/sha256sums" "$models/versions/$version"
rm -rf -- "$new" "${archive%/*}"
