# The workspaces that the host has: whether each runs, the digest of its definition, and its image. A stopped daemon is
# not queried: a query would start it.
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
line_of /run/docker.pid
if [ -n "$line" ] && [ -d "/proc/$line" ]; then
  ids=$(bounded docker ps -aq --no-trunc --filter label=hostwright.workspace)
  # shellcheck disable=SC2086
  [ -z "$ids" ] || bounded docker inspect --format \
    '{{index .Config.Labels "hostwright.workspace"}} {{.State.Status}} {{index .Config.Labels "hostwright.definition"}} {{.Image}}' \
    $ids | while read -r name state definition image; do
    say "$name" "$state"
    say "$name definition" "$definition"
    say "$name image" "$image"
  done
fi
