# Turns the link $path to the venv $home in one rename, and removes the venvs $stem-pyX.Y-KEY that are neither it nor
# the one before. Nothing is flushed: what a power failure cuts short has another size than pip recorded, and is found
# by that.
: "${path:?}"
: "${home:?}"
: "${stem:?}"
old=$(readlink -- "$path" || true)
if [ -e "$path" ] && [ ! -L "$path" ]; then mv -T -- "$path" "$path.before-hostwright.$$"; fi
mkdir -p -- "$(dirname -- "$path")"
ln -sfn -- "$home" "$path.hostwright-new" && mv -fT -- "$path.hostwright-new" "$path"
for other in "$stem"-py3.*-????????????; do
  case $other in "$home"|"$old") ;; *) rm -rf -- "$other" ;; esac
done
