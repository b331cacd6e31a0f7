# Lets this host hand out $files to others of its run until standard input ends: $program (serve.pl) as a transient unit of
# systemd, as a user that only exists for it and may change nothing. Where there is no systemd, as nobody.
# It prints what $program prints; "cannot …" where it cannot be done here.
: "${program:?}"
: "${unit:?}"
: "${address:?}"
: "${port:?}"
: "${uploads:?}"
: "${rate:?}"
: "${idle_s:?}"
: "${longest_s:?}"
: "${files:?}"
set -eu
if ! command -v perl >/dev/null; then echo 'cannot it has no perl'; exit 0; fi
eval "set -- $files"
set -- perl -e "$program" -- "$address" "$port" "$uploads" "$rate" "$idle_s" "$@"
if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
  # The unit has this program's standard input and output as its own: what ends the connection ends it.
  exec systemd-run --quiet --pipe --wait --collect --unit="$unit" \
    --property=DynamicUser=yes --property=ProtectSystem=strict --property=ProtectHome=yes \
    --property=PrivateTmp=yes --property=PrivateDevices=yes --property=NoNewPrivileges=yes \
    --property=CapabilityBoundingSet= --property=RestrictNamespaces=yes --property=RestrictSUIDSGID=yes \
    --property='RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX' --property=TasksMax=4 \
    --property=RuntimeMaxSec="$longest_s" --property=Nice=10 -- "$@"
elif command -v setpriv >/dev/null; then
  cd /
  exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all -- timeout "$longest_s" "$@"
fi
echo 'cannot it has neither systemd nor setpriv'
