# Run by initramfs-tools' init once the root of the live system is mounted at $rootmnt, which can be written: adds our
# authority to those that its programs know. That root is memory: what is installed from it does not get this.
: "${certificate:?}"
if [ "${1:-}" = prereqs ]; then exit 0; fi
root="${rootmnt:-/root}"
mkdir -p "$root/usr/local/share/ca-certificates" "$root/etc/ssl/certs"
cat "$certificate" >"$root/usr/local/share/ca-certificates/hostwright.crt"
cat "$certificate" >>"$root/etc/ssl/certs/ca-certificates.crt"
