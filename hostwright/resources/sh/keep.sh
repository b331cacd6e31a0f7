# keep PATH: keeps what is at a path, once for each path; made.sh goes before it. What is there is copied only where the
# record says what was there before: later it may be ours. A file of a package that came later goes with the package, and
# a directory is never copied.
: "${origin:?}"
keep() (
  k=$origin/files$1
  if [ -e "$k.written" ]; then exit 0; fi
  made "${1%/*}"
  mkdir -p -- "${k%/*}"
  if [ -e "$origin/packages" ] && { [ -L "$1" ] || [ -f "$1" ]; }; then
    owner=$(dpkg-query -S -- "$1" 2>/dev/null | sed 's/[:,].*//; q')
    if [ -z "$owner" ] || grep -q "^$owner	" "$origin/packages"; then
      rm -f -- "$k.kept"
      cp -aT -- "$1" "$k.kept"
      [ -L "$k.kept" ] || sync -- "$k.kept"
    fi
  fi
  : >"$k.written"
  sync -- "$k.written"
)
