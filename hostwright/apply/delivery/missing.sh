# Prints for each of $files (SHA256/NAME), in their order, "there", or "part BYTES" for how much of it has arrived; and
# at last "free KIB", the space that is left. A file is used by what it holds, not by its name: disks and people damage
# files long after they came. What is there and does not have its sum is removed.
: "${cache:?}"
: "${files:?}"
set -e; umask 022; mkdir -p "$cache"; cd "$cache"
# openssl has the processor's instructions for it, Debian's sha256sum has not: 2 to 4 times as fast
hash=sha256sum; if command -v openssl >/dev/null; then hash='openssl dgst -sha256 -r'; fi
right() { sum=$($hash <"$1") && [ "${sum%% *}" = "$2" ]; }
eval "set -- $files"
for file; do
  if [ -f "$file" ] && right "$file" "${file%%/*}"; then
    echo there
  else
    rm -f -- "$file"
    stat -c 'part %s' "$file.part" 2>/dev/null || echo part 0
  fi
done
df -Pk . | awk 'NR == 2 { print "free " $4 }'
