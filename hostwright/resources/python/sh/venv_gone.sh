# Removes the link $path if it leads into $homes, and all venvs $stem-pyX.Y-KEY with what pip unpacked beside them; then
# what was at $path before comes back: the oldest that was moved aside, or the link that was kept as $kept.
# What people put into the venvs is set aside. Needs oldest_back, set_aside and forget.
: "${path:?}"
: "${homes:?}"
: "${stem:?}"
: "${kept:?}"
case $(readlink -- "$path" || true) in "$homes"/*) rm -f -- "$path" ;; esac
rm -f -- "$path.hostwright-new"
for home in "$stem"-py3.*-????????????; do if [ -d "$home" ]; then set_aside "$home"; fi; done
rm -rf -- "$stem"-py3.*-???????????? "$stem"-py3.*-????????????.wheels
oldest_back "$path"
if [ -L "$kept" ] && [ ! -e "$path" ] && [ ! -L "$path" ]; then cp -aT -- "$kept" "$path"; fi
forget "$path"
for folder in "$homes" "$(dirname -- "$homes")"; do
  if [ ! -d "$folder" ] || [ -L "$folder" ] || mountpoint -q -- "$folder"; then continue; fi
  rmdir --ignore-fail-on-non-empty -- "$folder"
done
