# tried.sh FILE: nginx reads its configuration with FILE in the place of $conf. It runs in a mount namespace of its own,
# so that nobody else sees that.
: "${conf:?}"
copy=$(mktemp -d)
trap 'umount /etc/nginx 2>/dev/null || :; rm -rf -- "$copy"' EXIT
cp -a /etc/nginx/. "$copy"
mkdir -p -- "$copy/conf.d"
cp -- "$1" "$copy${conf#/etc/nginx}"
mount --bind "$copy" /etc/nginx
nginx -t -q
