# Which of Docker's own rules in the host's firewall are gone, a line each: "nat", "filter". Nothing where they are there,
# where Docker does not run, and where it sets none (iptables: false) or sets them without iptables.
PATH=$PATH:/usr/sbin:/sbin
lost_rules() {
  pid=
  read -r pid 2>/dev/null </run/docker.pid || :  # it has no end of line
  [ -n "$pid" ] && [ -d "/proc/$pid" ] || return 0
  command -v iptables >/dev/null 2>&1 || return 0
  # without what separates the words of either: the shell reads no NUL, and splits at blanks
  settings=''
  while read -r line || [ -n "$line" ]; do
    for word in $line; do settings=$settings$word; done
  done 2>/dev/null </etc/docker/daemon.json || :
  read -r line 2>/dev/null <"/proc/$pid/cmdline" || :
  case $settings$line in
    *--iptables=false* | *--firewall-backend=nftables* | *--firewall-backendnftables*) return 0 ;;
    *'"iptables":false'* | *'"firewall-backend":"nftables"'*) return 0 ;;
  esac
  nat=$(iptables -w -t nat -S 2>/dev/null) || return 0
  there=$(iptables -w -S 2>/dev/null) || return 0
  lost_of "$nat" "$there"
}
# The same of what iptables says of the tables nat and filter, read by the shell alone: this runs in every look at a host.
# It leaves the shell splitting at line ends.
lost_of() {
  IFS='
'
  set -f
  prerouting='' forward='' bridges=''
  for rule in $1; do
    case $rule in
      '-A PREROUTING '*'-j DOCKER') prerouting=there ;;
      '-A POSTROUTING '*' ! -o '*' -j MASQUERADE') rule=${rule##* ! -o } bridges="$bridges${rule%% *}$IFS" ;;
    esac
  done
  [ -n "$prerouting" ] || echo nat
  # DOCKER-USER is there for others, and may be set by them
  for rule in $2; do
    case $rule in '-A FORWARD '*'-j DOCKER-USER') ;; '-A FORWARD '*'-j DOCKER'*) forward=there ;; esac
  done
  # a network that is made after a flush brings rules of its own alone
  for bridge in $bridges; do
    [ ! -e "/sys/class/net/$bridge" ] || case $2 in *" -o $bridge "*) ;; *) forward='' ;; esac
  done
  [ -n "$forward" ] || echo filter
}
