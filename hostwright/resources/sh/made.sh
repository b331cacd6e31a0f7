# made PATH: marks a directory that is about to be made, and those above it that are not there either.
# $origin alone is for root; those above it are for everybody.
# shellcheck disable=SC2174
: "${origin:?}"
made() (
  d=$1
  mkdir -p -m 700 -- "$origin"
  mkdir -p -- "$origin/files${d%/*}"
  while [ -n "$d" ] && [ ! -e "$d" ]; do : >"$origin/files$d.made"; d=${d%/*}; done
)
