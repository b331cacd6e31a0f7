# Runs the $installer with its $flags; needs `tell`. $installing exists until the $record of its files does.
# The archive's own head takes the directory in which it unpacks as a word of its own only, not after "=".
# All DKMS entries, of any version, are removed: an entry of this version makes `dkms add` fail, and any other is built
# for each new kernel. What `dkms remove` cannot remove (a truncated tree) is removed with the directory.
: "${installer:?}"
: "${flags:?}"
: "${installing:?}"
: "${record:?}"
mkdir -p "${installing%/*}"; rm -f "$record"; : >"$installing"; sync "${installing%/*}"
for entry in /var/lib/dkms/nvidia/*/; do
  entry=${entry%/}
  if [ -L "$entry" ] || [ ! -d "$entry" ]; then continue; fi
  dkms remove -m nvidia -v "${entry##*/}" --all || true  # its tree goes below
done
rm -rf /var/lib/dkms/nvidia
eval "set -- $flags"
sh "$installer" --tmpdir "${TMPDIR:-/tmp}" "$@" || tell
