# Removes what Hostwright itself keeps on a host; directories that somebody else uses too stay. $folders go with all
# that is in them, $places only once they are empty, and so do the folders below $set_aside.
# Links and filesystems of their own are others' too.
: "${folders:?}"
: "${release:?}"
: "${set_aside:?}"
: "${places:?}"
set -eu
others() { [ -L "$1" ] || mountpoint -q -- "$1"; }
eval "set -- $folders"
rm -rf -- "$@" || for folder; do [ ! -d "$folder" ] || others "$folder"; done
rm -f -- "$release" "$release.new"
if [ -d "$set_aside" ]; then find "$set_aside" -depth -type d -empty -delete; fi
eval "set -- $places"
for folder; do
  rmdir --ignore-fail-on-non-empty -- "$folder" 2>/dev/null || [ ! -d "$folder" ] || others "$folder"
done
