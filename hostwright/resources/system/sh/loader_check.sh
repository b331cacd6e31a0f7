# Fails where the loader finds one of the libraries elsewhere than below $home, and says where. What another directory
# puts first, ldconfig alone cannot mend. $conf: the file that should name the directory first. Needs found.
: "${libraries:?}"
: "${home:?}"
: "${conf:?}"
eval "set -- $libraries"
places=$(found "$*" "$home")
bad=
for name in "$@"; do
  path=$(echo "$places" | sed -n "s/^$name //p")
  case $path in "$home"/*) continue ;; esac
  echo "hostwright: the loader finds $name at ${path:-no place}"
  bad=1
done
if [ -n "$bad" ]; then
  echo "hostwright: not below $home as $conf wants; either the library is not there, or one of these names another" \
    "directory first:"
  grep -rs . /etc/ld.so.conf.d
  exit 1
fi
