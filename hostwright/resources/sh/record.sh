# Writes down what is on a host before its first change, below $origin; does nothing where that was done before. Needs
# automatic.sh.
: "${origin:?}"
: "${installed:?}"
set -eu
if [ -e "$origin/packages" ]; then exit 0; fi
umask 077
# The login user reads locks in the directory above: closed to it, the host would count as locked.
install -d -m 755 "${origin%/*}"
install -d -m 700 "$origin"
native=$(dpkg --print-architecture)
dpkg-query -W -f='${Package}:${Architecture}\t${Version}\t${db:Status-Abbrev}\n' >"$origin/packages.new"
sed -i "s/^\([^:]*\):\($native\|all\|\)\t/\1\t/" "$origin/packages.new"
sed -n 's/^\([^\t]*\)\t[^\t]*\t.i.*/\1/p' "$origin/packages.new" | grep -vxF -e "$(automatic)" >"$origin/manual" || [ $? -eq 1 ]  # none is
getent passwd >"$origin/passwd"
getent group >"$origin/group"
: >"$installed"
sync "$origin"/*
mv -f "$origin/packages.new" "$origin/packages"
