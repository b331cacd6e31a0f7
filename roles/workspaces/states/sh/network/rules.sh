# What keeps other hosts from people's containers: a packet to one of these bridges is dropped unless its connection
# began on this host. `rule` and `jump` ask iptables for it (-C), set it (-I) or take it away (-D), as their first word says;
# iptables over nftables prints the rule that it was asked for (seen with 1.8.9).
# shellcheck disable=SC2034,SC2317  # for the scripts that begin with this
PATH=$PATH:/usr/sbin:/sbin
bridges='hww-+ hostwright-hub'
rule() { iptables -w "$1" DOCKER-USER -o "$2" -m conntrack ! --ctstate RELATED,ESTABLISHED -j DROP >/dev/null; }
jump() { iptables -w "$1" FORWARD -j DOCKER-USER >/dev/null; }
