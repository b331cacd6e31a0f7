# forget PATH: the path is the host's own again. tidy PATH: directories that we made go, from this one upwards, as far as
# they are empty.
: "${origin:?}"
tidy() (
  d=$1
  while [ -n "$d" ] && [ -e "$origin/files$d.made" ] && { [ ! -e "$d" ] || rmdir -- "$d" 2>/dev/null; }; do
    rm -f -- "$origin/files$d.made"
    d=${d%/*}
  done
)
forget() {
  rm -f -- "$origin/files$1.written" "$origin/files$1.kept"
  tidy "${1%/*}"
}
