# What is wrong with the certificate from the ACME authority, a line each. $names are those that it must be for.
: "${file:?}"
: "${names:?}"
[ -f "$file" ] || { echo absent; exit 0; }
[ "$(stat -c %u:%a -- "$file")" = "$(id -u):600" ] || echo 'others may read its key'
openssl x509 -in "$file" -noout -checkend 0 >/dev/null 2>&1 || { echo 'has ended or cannot be read'; exit 0; }
openssl x509 -in "$file" -noout -checkend 1728000 >/dev/null || echo 'ends within 20 days'
eval "set -- $names"
for name; do
  openssl x509 -in "$file" -noout -checkhost "$name" | grep -q 'does match' || echo "without $name"
done
