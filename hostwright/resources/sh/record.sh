# Writes down what is on a host before its first change, below $origin; does nothing where that was done before.
: "${origin:?}"
: "${installed:?}"
set -eu
if [ -e "$origin/packages" ]; then exit 0; fi
umask 077
mkdir -p "$origin"
dpkg-query -W -f='${Package}\t${Version}\t${db:Status-Abbrev}\n' >"$origin/packages.new"
apt-mark showmanual >"$origin/manual"
getent passwd >"$origin/passwd"
getent group >"$origin/group"
: >"$installed"
sync "$origin"/*
mv -f "$origin/packages.new" "$origin/packages"
