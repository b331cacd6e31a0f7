# Turns the link $path to the venv $home in one rename, and removes the venvs $stem-pyX.Y-KEY that are neither it nor
# the one before, once what people put into them is set aside. Needs set_aside. Nothing is flushed: what a power failure
# cuts short has another size than pip recorded, and is found by that.
: "${path:?}"
: "${home:?}"
: "${stem:?}"
old=$(readlink -- "$path" || true)
mkdir -p -- "$(dirname -- "$path")"
ln -sfn -- "$home" "$path.hostwright-new" && mv -fT -- "$path.hostwright-new" "$path"
for other in "$stem"-py3.*-????????????; do
  case $other in "$home"|"$old") continue ;; esac
  if [ -d "$other" ]; then set_aside "$other"; fi
  rm -rf -- "$other"
done
