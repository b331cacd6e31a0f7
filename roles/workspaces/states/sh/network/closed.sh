# shellcheck shell=sh
# Nobody outside this host begins a connection to a container of a workspace. Its port is on 127.0.0.1, but Docker before
# 28 also forwards what a neighbour routes to the container's own address. Written by Hostwright; Docker's start runs it.
set -eu
command -v iptables >/dev/null || exit 0 # Docker that does without it closes this itself
rule="-o hww-+ -m conntrack ! --ctstate RELATED,ESTABLISHED -j DROP"
iptables -w -N DOCKER-USER 2>/dev/null || : # Docker makes it too, and leaves what is in it
# shellcheck disable=SC2086
iptables -w -C DOCKER-USER $rule 2>/dev/null || iptables -w -I DOCKER-USER $rule
