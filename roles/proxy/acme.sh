# Obtain the proxy's certificate from the ACME authority, or renew it where that is due (30 days before its end), and
# have nginx take it. "now": nginx first reads where it is to answer the authority.
: "${directory:?}"
: "${file:?}"
umask 077
fail() {
  echo "$*" >&2
  exit 1
}
if [ "${1:-}" = now ]; then
  nginx -t -q
  systemctl start nginx.service
  systemctl reload nginx.service
fi
config=$directory/config
[ -d "$directory/accounts" ] && [ -n "$(ls -A -- "$directory/accounts")" ] ||
  dehydrated --register --accept-terms --config "$config" ||
  fail "the ACME authority was not reached, or takes no account: see the lines above, proxy_acme and proxy_acme_authority"
dehydrated --cron --config "$config" || fail "the ACME authority gave no certificate: see the lines above; it must reach" \
  "this host by each of proxy_names on port 80"
cat -- "$directory/certs/host/privkey.pem" "$directory/certs/host/fullchain.pem" >"$file.new"
if cmp -s -- "$file.new" "$file"; then
  rm -f -- "$file.new"
else
  sync -- "$file.new"
  mv -fT -- "$file.new" "$file"
  nginx -t -q
  systemctl reload nginx.service
fi
