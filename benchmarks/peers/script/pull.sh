# Serves PREFIX/files with nginx while every host of standard input pulls FILE from URL and checks it, $1 at a time:
# pull.sh AT_ONCE SSH_CONFIG PREFIX NGINX_CONF URL FILE SHA256
set -eu
at_once=$1 config=$2 prefix=$3 conf=$4 url=$5 file=$6 sum=$7
nginx -p "$prefix" -c "$conf" -g 'daemon off;' </dev/null &
trap 'kill "$!"; wait' EXIT
n=0
until curl -sfI -o /dev/null "http://127.0.0.1:8099/$file"; do n=$((n + 1)); [ "$n" -lt 200 ] || exit 1; sleep 0.05; done
remote="set -e; sudo install -d -o \$(id -u) /opt/bulk; cd /opt/bulk; curl -sf -o file $url/$file; echo $sum  file | sha256sum -c --quiet"
xargs -P "$at_once" -I @HOST@ ssh -F "$config" @HOST@ "$remote"
