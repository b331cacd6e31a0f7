# What is wrong with the name servers that Docker gives containers: a line, or nothing. Docker reads /etc/resolv.conf,
# or systemd-resolved's list of servers where that names the stub alone. Where it finds none, containers ask 8.8.8.8 and
# 8.8.4.4. A loopback address is asked on the host for containers in networks of their own.
DOCKERS_CHOICE='so that Docker has containers ask 8.8.8.8 and 8.8.4.4, which firewalls often block'
named() { sed -n 's/^[[:space:]]*nameserver[[:space:]]\{1,\}\([^[:space:]#;]\{1,\}\).*/\1/p' "$1" 2>/dev/null; }
answered() { # ADDRESS: whether something on this host listens for questions to it
  printf '%s\n' "$listening" | awk -v address="$1" '
    { sub(/%[^:]*/, "", $4) }
    $4 == address ":53" || $4 == "[" address "]:53" || $4 == "0.0.0.0:53" || $4 == "*:53" || $4 == "[::]:53" { found = 1 }
    END { exit !found }'
}
name_servers_lost() {
  ! grep -Eqs '"dns"[[:space:]]*:' /etc/docker/daemon.json || return 0
  pid=$(cat /run/docker.pid 2>/dev/null) || pid=none
  case " $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") " in *' --dns='* | *' --dns '*) return 0 ;; esac
  from=/etc/resolv.conf why=''
  if [ "$(named "$from")" = 127.0.0.53 ]; then
    from=/run/systemd/resolve/resolv.conf
    why=" (which Docker reads as /etc/resolv.conf names 127.0.0.53 alone)"
  fi
  if [ ! -e "$from" ]; then
    lost='is not there'
    [ ! -L "$from" ] || lost="is a link to $(readlink -- "$from"), which is not there"
    echo "$from$why $lost, $DOCKERS_CHOICE"
    return 0
  fi
  servers=$(named "$from" | tr '\n' ' ')
  [ -n "$servers" ] || { echo "$from$why names no server, $DOCKERS_CHOICE"; return 0; }
  listening=$(ss -Hlun 2>/dev/null) || return 0
  for server in $servers; do
    case $server in 127.* | ::1) ! answered "$server" || return 0 ;; *) return 0 ;; esac
  done
  echo "$from$why names only ${servers% }, where nothing listens on this host"
}
