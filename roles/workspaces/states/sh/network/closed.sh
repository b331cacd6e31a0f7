# Nobody outside this host begins a connection to a container of a workspace. Its port is on 127.0.0.1, but Docker before
# 28 also forwards what a neighbour routes to the container's own address. Written by Hostwright; Docker's start runs it.
# It needs rules.sh.
# shellcheck shell=sh disable=SC2154
set -eu
command -v iptables >/dev/null || exit 0 # Docker that does without it closes this itself
iptables -w -N DOCKER-USER 2>/dev/null || : # Docker makes it too, and leaves what is in it
for bridge in $bridges; do rule -C "$bridge" 2>/dev/null || rule -I "$bridge"; done
jump -C 2>/dev/null || jump -I # Docker's start puts it first; whoever flushed the chain took it away
