# make: a new certificate, of the authority that is there where that may vouch for all names and lasts long enough.
# The functions of certificate.sh stand before it.
: "${directory:?}"
: "${purpose:?}"
make() {
  umask 077
  new=$(mktemp -d -p "$directory")
  trap 'rm -rf -- "$new"' EXIT
  authority=$directory/authority.pem
  leaf_days=825 alternatives='' permitted='permitted;IP:0.0.0.0/0.0.0.0,permitted;IP:::/::'
  for name in $(wanted); do
    alternatives="$alternatives${alternatives:+,}$(kind "$name"):$name"
    [ "$(kind "$name")" = IP ] || permitted="$permitted,permitted;DNS:$name"
  done
  [ -n "$alternatives" ] || { echo 'the host has no name and no address: set '"${purpose}_names" >&2; return 1; }
  if ! openssl x509 -in "$authority" -noout -checkend $((leaf_days * 86400)) >/dev/null 2>&1 || ! signed; then
    new_authority
    signed
  fi
  sync -- "$new/host.pem"
  mv -fT -- "$new/host.pem" "$directory/host.pem"
  (umask 022 && openssl x509 -in "$authority" >"$new/authority.crt")
  mv -fT -- "$new/authority.crt" "$directory/authority.crt"
}

key() { openssl ecparam -name prime256v1 -genkey -noout; }

new_authority() {
  key >"$new/key"
  cat >"$new/config" <<TEXT
[req]
distinguished_name = name
x509_extensions = authority
prompt = no
[name]
CN = hostwright $purpose of $(hostname | cut -c1-40)
[authority]
basicConstraints = critical,CA:true,pathlen:0
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
nameConstraints = critical,$permitted
TEXT
  openssl req -x509 -new -sha256 -key "$new/key" -config "$new/config" -days 3650 >"$new/authority"
  cat "$new/key" "$new/authority" >"$new/authority.pem"
  sync -- "$new/authority.pem"
  mv -fT -- "$new/authority.pem" "$authority"
}

signed() { # a certificate for all names, if the authority may vouch for them
  key >"$new/key"
  cat >"$new/extensions" <<TEXT
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = $alternatives
TEXT
  openssl req -new -key "$new/key" -subj "/CN=hostwright $purpose" -out "$new/request" &&
    openssl x509 -req -sha256 -in "$new/request" -CA "$authority" -CAkey "$authority" -days "$leaf_days" \
      -set_serial "0x1$(openssl rand -hex 15)" -extfile "$new/extensions" -out "$new/certificate" 2>/dev/null &&
    cat "$new/key" "$new/certificate" >"$new/host.pem" && leads "$new/host.pem"
}
