# Sets the mode of nvidia-container-runtime in the toolkit's config.toml, and keeps all else that it says.
# shellcheck disable=SC2016  # the program is awk's
: "${file:?}"
: "${mode:?}"
new=$file.hostwright-new
cp -p -- "$file" "$new"
awk -v mode="$mode" '
  /^\[/ { inside = $1 == "[nvidia-container-runtime]" }
  inside && /^[ \t]*mode[ \t]*=/ { next }
  { print }
  inside && /^\[/ { print "mode = \"" mode "\""; set = 1 }
  END { if (!set) print "\n[nvidia-container-runtime]\nmode = \"" mode "\"" }' "$file" >"$new"
sync -- "$new"
mv -fT -- "$new" "$file"
