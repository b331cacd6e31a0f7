# "socket MODE OWNER:GROUP" of Docker's socket, and "proxy NAME ADDRESS WHY" of each proxy of dockerd's that cannot be one: its
# name does not resolve, or it is said to be this host and nothing listens there. Nothing is connected to, and what stands
# before the address may be a password. "helper NAME FILE" of a program for passwords that a client's settings name
# (credsStore) and that is not on the host, at most four.
stat -c 'socket %a %U:%G' /run/docker.sock 2>/dev/null || true  # no engine, no socket
timeout -k 1 5 grep -HosE '"credsStore"[[:space:]]*:[[:space:]]*"[A-Za-z0-9._-]{1,60}"' \
  /root/.docker/config.json /home/*/.docker/config.json | head -n 4 |
  while IFS=: read -r file _ name; do
    name=${name#*\"} name=${name%\"}
    command -v "docker-credential-$name" >/dev/null || echo "helper $name $file"
  done
set -f
for word in $(systemctl show -p Environment --value docker.service); do
  word=${word#\"} name=${word%%=*}
  case $name in HTTP_PROXY | HTTPS_PROXY | http_proxy | https_proxy) ;; *) continue ;; esac
  at=${word#*=} at=${at%\"} at=${at#*://} at=${at##*@} at=${at%%/*}
  case $at in *:*) port=${at##*:} ;; *) port=80 ;; esac
  case $port in '' | *[!0-9]*) continue ;; esac
  why=
  case ${at%:*} in
    '' | *'['*) continue ;;
    127.* | localhost) [ -n "$(ss -Hltn "sport = :$port" 2>&1)" ] || why='nothing listens there on this host' ;;
    *[!0-9.]*) timeout 5 getent ahosts "${at%:*}" >/dev/null || why='its name does not resolve' ;;
  esac
  [ -z "$why" ] || echo "proxy $name $at $why"
done
exit 0
