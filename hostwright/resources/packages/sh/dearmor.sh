# dearmor FILE: the key's bytes, whether FILE is ASCII-armored or not; with base64 alone, so that asking is cheap.
# armored FILE KEY: whether FILE is ASCII-armored and holds the bytes that are KEY in base64, without a process; one that
# is written in another way may hold them as well.
dearmor() {
  if grep -q -e '-----BEGIN PGP' "$1"; then
    sed -n '/^-----BEGIN/,/^-----END/{/^\r*$/,/^-----END/{/^-----/d;/^=/d;p;};}' "$1" | base64 -di
  else
    cat "$1"
  fi
}
armored() {
  joined='' within=''
  while IFS= read -r line || [ -n "$line" ]; do
    case $within$line in
      '-----BEGIN PGP'*) within=head: ;;
      *:-----END*) within='' ;;
      head:) within=body: ;;
      body:[=-]*) ;;
      body:*) joined=$joined${line} ;;
    esac
  done <"$1"
  [ -n "$joined" ] && [ "$joined" = "$2" ]
}
