# Make the network of people's Jupyters, or make it anew with other addresses.
: "${network:?}"
: "${subnet:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
stopped=$(docker ps -aq --filter label=hostwright.hub)
# shellcheck disable=SC2086
[ -z "$stopped" ] || docker rm $stopped >/dev/null
docker network rm "$network" >/dev/null 2>&1 || :
docker network create --driver bridge --subnet "$subnet" --opt com.docker.network.bridge.enable_icc=false \
  --opt "com.docker.network.bridge.name=$network" "$network" >/dev/null || {
  echo "the addresses $subnet are another network's of this host (ip route shows them): set jupyterhub_network" >&2
  exit 1
}
