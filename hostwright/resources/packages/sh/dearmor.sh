# dearmor FILE: the key's bytes, whether FILE is ASCII-armored or not; with base64 alone, so that asking is cheap.
dearmor() {
  if grep -q -e '-----BEGIN PGP' "$1"; then
    sed -n '/^-----BEGIN/,/^-----END/{/^\r*$/,/^-----END/{/^-----/d;/^=/d;p;};}' "$1" | base64 -di
  else
    cat "$1"
  fi
}
