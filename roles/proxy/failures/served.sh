# What is wrong with what nginx serves for workspaces, a line each: "ended FILE: WHEN", "ending FILE: WHEN", "silent
# PATH: PORT". Nothing where the role is not on the host.
: "${conf:?}"
[ -f "$conf" ] || exit 0
fortnight=1209600 # seconds
file=$(sed -n 's/^ *ssl_certificate \([^ ;]*\);.*/\1/p' "$conf" | head -n 1)
if [ -n "$file" ]; then
  for case in 'ended 0' "ending $fortnight"; do
    timeout 5 openssl x509 -in "$file" -noout -checkend "${case#* }" >/dev/null 2>&1 && continue
    echo "${case% *} $file: $(timeout 5 openssl x509 -in "$file" -noout -enddate 2>&1 | head -n 1)"
    break
  done
fi
listening=$(ss -Hltn) || exit 0
sed -n 's/^ *location \(\/[^ ]*\/\) {$/\1/p; s/^ *proxy_pass http:\/\/127.0.0.1:\([0-9]*\);$/\1/p' "$conf" |
  while read -r path && read -r port; do
    case $listening in *"127.0.0.1:$port "*) ;; *) echo "silent $path: nothing listens on 127.0.0.1:$port" ;; esac
  done
