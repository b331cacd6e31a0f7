# Leaves nothing half-installed, half-configured or waiting for a trigger.
# A package that was cut off while it was unpacked (a full disk does that) can neither be configured nor mended by
# `apt-get -f`: dpkg wants its archive again. One that no repository has goes; whoever needs it will find it missing.
# The first `--configure -a` may fail for a dependency that `apt-get -f` brings only then; the last one decides.
# $patiently: a program for `sh -c` that runs its arguments, and again while another process has the lock.
# shellcheck disable=SC2016,SC2086  # dpkg's own expressions; $apt_options are words
: "${patiently:?}"
: "${apt_options:?}"
work=$(mktemp -d)
chmod 755 "$work"
for name in $(dpkg-query -W -f='${db:Status-Eflag} ${binary:Package}\n' | sed -n 's/^reinstreq //p'); do
  version=$(dpkg-query -W -f='${Version}' "$name")
  (
    cd "$work" && rm -f ./*.deb && apt-get -q download "$name=$version" &&
      sh -c "$patiently" patiently dpkg --unpack ./*.deb
  ) || sh -c "$patiently" patiently dpkg --remove --force-remove-reinstreq --force-depends "$name"
done
rm -rf "$work"
sh -c "$patiently" patiently dpkg --configure -a --force-confdef --force-confold || true
DEBIAN_FRONTEND=noninteractive apt-get $apt_options -f install
sh -c "$patiently" patiently dpkg --configure -a
