# Exits with 0 if data.sh's directory is to be removed: nobody put anything in it, and something of the daemon is there.
# shellcheck disable=SC2154  # the values of data.sh
if held; then exit 1; fi
eval "set -- $made"
for path in "$@" "$key"; do
  if [ -e "$path" ]; then printf '%s\n' "$path"; exit 0; fi
done
if empty; then echo "$directory"; exit 0; fi
eval "set -- $trees"
for tree; do if bare "$tree"; then echo "$tree"; exit 0; fi; done
exit 1
