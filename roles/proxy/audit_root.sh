# Whether the certificate that nginx serves for workspaces lasts 30 days.
conf=/etc/nginx/conf.d/hostwright-workspaces.conf
file=$(sed -n 's/^ *ssl_certificate \([^ ;]*\);.*/\1/p' "$conf" 2>/dev/null | head -n 1)
state=
if [ -n "$file" ]; then
  if bounded openssl x509 -in "$file" -noout -checkend 2592000 >/dev/null 2>&1; then
    state=valid
  elif bounded openssl x509 -in "$file" -noout -checkend 0 >/dev/null 2>&1; then
    state='ends within 30 days'
  else
    state='has ended or cannot be read'
  fi
fi
say certificate "$state"
