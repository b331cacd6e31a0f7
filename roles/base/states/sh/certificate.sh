# The host's own authority and certificate, each in one file with its key. $names are the names from the inventory.
: "${directory:?}"
: "${names?}"
month=2592000 # seconds
authority=$directory/authority.pem own=$directory/host.pem

wanted() { # the names and addresses under which the host is reached, a line each
  {
    eval "printf '%s\n' $names"
    hostname
    timeout 5 hostname -f || :
    ip -o -4 addr show scope global |
      awk '$2 !~ /^(docker|br-|veth|virbr|cni|flannel)/ { sub("/.*", "", $4); print $4 }'
  } 2>/dev/null | grep -xE '[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?' | grep -vxE 'localhost(\.localdomain)?' | sort -u
}

kind() { # of a name, as OpenSSL calls it
  if printf '%s\n' "$1" | grep -qxE '([0-9]{1,3}\.){3}[0-9]{1,3}'; then echo IP; else echo DNS; fi
}

covered() { # FILE NAME
  case $(kind "$2") in IP) option=-checkip ;; *) option=-checkhost ;; esac
  openssl x509 -in "$1" -noout $option "$2" | grep -q 'does match'
}

leads() { # FILE: whether the authority's certificate vouches for it
  openssl verify -CAfile "$authority" "$1" >/dev/null 2>&1
}

problems() { # what is wrong with the certificate, a line each
  for file in "$authority" "$own" "$directory/authority.crt"; do
    [ -f "$file" ] || { echo absent; return; }
  done
  for file in "$authority" "$own"; do
    [ "$(stat -c %u:%a -- "$file")" = "$(id -u):600" ] || echo 'others may read its key'
  done
  openssl x509 -in "$own" -noout -checkend 0 >/dev/null 2>&1 || { echo 'has ended or cannot be read'; return; }
  openssl x509 -in "$own" -noout -checkend $month >/dev/null || echo 'ends within 30 days'
  leads "$own" || echo 'not of our authority'
  for name in $(wanted); do
    covered "$own" "$name" || echo "without $name"
  done
}
