# The network of a person's containers: in it they reach no other container, and only this host begins a connection to
# them. `make_network` makes it where it is missing, and adds it to `made`.
: "${user:?}"
: "${network:?}"
: "${bridge:?}"
: "${closed:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
make_network() {
  "$closed" ||
    fail "the host's firewall does not take the rule that keeps others from its containers (iptables -S says more)"
  docker network inspect "$network" >/dev/null 2>&1 || {
    must "the network $network could not be made" docker network create --label "hostwright.workspaces=$user" \
      --driver bridge --opt "com.docker.network.bridge.name=$bridge" \
      --opt com.docker.network.bridge.enable_icc=false "$network"
    made="network '$network' ${made:-}"
  }
}
