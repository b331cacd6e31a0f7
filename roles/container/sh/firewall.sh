# Which of Docker's own rules in the host's firewall are gone, a line each: "nat", "filter". Nothing where they are there,
# where Docker does not run, and where it sets none (iptables: false) or sets them without iptables.
PATH=$PATH:/usr/sbin:/sbin
lost_rules() {
  pid=$(cat /run/docker.pid 2>/dev/null) && [ -n "$pid" ] && [ -d "/proc/$pid" ] || return 0
  command -v iptables >/dev/null 2>&1 || return 0
  case " $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") " in
  *' --iptables=false '* | *' --firewall-backend=nftables '* | *' --firewall-backend nftables '*) return 0 ;;
  esac
  ! grep -Eqs '"iptables"[[:space:]]*:[[:space:]]*false|"firewall-backend"[[:space:]]*:[[:space:]]*"nftables"' \
    /etc/docker/daemon.json || return 0
  nat=$(iptables -w -t nat -S 2>/dev/null) || return 0
  there=$(iptables -w -S 2>/dev/null) || return 0
  printf '%s\n' "$nat" | grep -q -e '^-A PREROUTING .*-j DOCKER$' || echo nat
  # DOCKER-USER is there for others, and may be set by them
  printf '%s\n' "$there" | grep -e '^-A FORWARD .*-j DOCKER' | grep -qv -e '-j DOCKER-USER$' || { echo filter; return 0; }
  # a network that is made after a flush brings rules of its own alone
  for bridge in $(printf '%s\n' "$nat" | sed -n 's/^-A POSTROUTING .* ! -o \([^ ]*\) -j MASQUERADE$/\1/p'); do
    [ ! -e "/sys/class/net/$bridge" ] || printf '%s\n' "$there" | grep -qF -e " -o $bridge " || { echo filter; return 0; }
  done
}
