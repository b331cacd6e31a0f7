# End people's servers; then the network and the images go, where they are named. People's files are not touched.
: "${names?}"
: "${network?}"
: "${images?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
eval "set -- $names"
for name; do
  if docker container inspect "$name" >/dev/null 2>&1; then
    docker stop --time 20 "$name" >/dev/null || :
    docker rm -f "$name" >/dev/null
  fi
done
if [ -n "$network" ] && docker network inspect "$network" >/dev/null 2>&1; then docker network rm "$network" >/dev/null; fi
eval "set -- $images"
for image; do
  if docker image inspect "$image" >/dev/null 2>&1; then docker image rm "$image" >/dev/null; fi
done
