# dearmor FILE: the key's bytes, whether FILE is ASCII-armored or not; with base64 alone, so that asking is cheap.
# armored FILE KEY: whether FILE is ASCII-armored and holds the bytes that are KEY in base64, for half the processes of a
# comparison; one that is written in another way may hold them as well.
dearmor() {
  if grep -q -e '-----BEGIN PGP' "$1"; then
    sed -n '/^-----BEGIN/,/^-----END/{/^\r*$/,/^-----END/{/^-----/d;/^=/d;p;};}' "$1" | base64 -di
  else
    cat "$1"
  fi
}
armored() {
  body=$(sed -n '/^-----BEGIN PGP/,/^-----END/{/^$/,/^-----END/{/^-----/d;/^=/d;p;};}' "$1")
  IFS='
'
  set -f
  joined=''
  for line in $body; do joined=$joined$line; done
  [ -n "$joined" ] && [ "$joined" = "$2" ]
}
