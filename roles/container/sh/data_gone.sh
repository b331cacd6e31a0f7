# Removes what the daemon made in data.sh's directory, its key and trees, and the directory itself if it is then empty.
# shellcheck disable=SC2154  # the values of data.sh
if held; then exit 0; fi
eval "rm -rf --one-file-system -- $made"
eval "set -- $trees"
for tree; do if bare "$tree"; then rm -rf -- "$tree"; fi; done
if empty; then rmdir -- "$directory"; fi
if [ -n "$key" ]; then
  rm -f -- "$key"
  [ ! -d "${key%/*}" ] || rmdir --ignore-fail-on-non-empty -- "${key%/*}"
fi
