# Runs the $installer with its $flags, after `tell`. $installing is there until the $record of its files is.
# Every entry of DKMS's, of any version, goes: one of this version makes `dkms add` fail, another one is built for each
# new kernel. What `dkms remove` cannot take away (a tree that was cut off) goes with the directory.
: "${installer:?}"
: "${flags:?}"
: "${installing:?}"
: "${record:?}"
mkdir -p "${installing%/*}"; rm -f "$record"; : >"$installing"; sync "${installing%/*}"
for entry in /var/lib/dkms/nvidia/*/; do
  entry=${entry%/}
  if [ -L "$entry" ] || [ ! -d "$entry" ]; then continue; fi
  dkms remove -m nvidia -v "${entry##*/}" --all || true
done
rm -rf /var/lib/dkms/nvidia
eval "set -- $flags"
sh "$installer" "$@" || tell
