# Take workspaces off a host: their containers, root's files of them, networks that nobody's container is in any more,
# and images that were built for them. People's files are not touched.
: "${names?}"
: "${networks?}"
: "${images?}"
: "${state:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
eval "set -- $names"
for name; do
  unit=hostwright-batch@$name.service
  if [ "$(docker container inspect --format '{{.State.Running}}' "workspace-$name" 2>/dev/null)" = true ]; then
    docker stop --time 20 "workspace-$name" >/dev/null 2>&1 || :
    waited=0 # a batch run's batch.json says how it ended, and its log has the last that it printed
    while [ "$waited" -lt 60 ] && systemctl is-active --quiet "$unit" 2>/dev/null; do
      waited=$((waited + 1))
      sleep 0.5
    done
  fi
  systemctl stop -- "$unit" 2>/dev/null || :
  rm -f -- "/etc/systemd/system/multi-user.target.wants/$unit"
  for container in "workspace-$name" "workspace-$name.new" "workspace-$name.old"; do
    if docker container inspect "$container" >/dev/null 2>&1; then
      docker stop --time 20 "$container" >/dev/null 2>&1 || :
      must "the container $container could not be removed" docker rm -f "$container"
    fi
  done
  must "$state/$name could not be removed" rm -rf -- "${state:?}/$name"
done
eval "set -- $networks"
for network; do
  ! docker network inspect "$network" >/dev/null 2>&1 ||
    must "the network $network could not be removed" docker network rm "$network"
done
eval "set -- $images"
for image; do
  ! docker image inspect "$image" >/dev/null 2>&1 ||
    must "the image $image could not be removed" docker image rm "$image"
done
