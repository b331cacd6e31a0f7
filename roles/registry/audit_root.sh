# Whether the certificate that the registry serves lasts 30 days.
file=/run/hostwright-registry/certificate.pem
state=
if [ -f "$file" ]; then
  if bounded openssl x509 -in "$file" -noout -checkend 2592000 >/dev/null 2>&1; then
    state=valid
  elif bounded openssl x509 -in "$file" -noout -checkend 0 >/dev/null 2>&1; then
    state='ends within 30 days'
  else
    state='has ended or cannot be read'
  fi
fi
say certificate "$state"
