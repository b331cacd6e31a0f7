# Take containers off all of their networks: their ports and open connections end, and what runs in them goes on. Docker
# keeps it so when one is restarted, or Docker itself.
: "${containers:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
# shellcheck disable=SC2016  # of Docker's template
format='{{.State.Restarting}} {{range $name, $end := .NetworkSettings.Networks}}{{$name}} {{end}}'
failed=''
eval "set -- $containers"
for container; do
  has=$(docker container inspect --format "$format" "$container" 2>/dev/null) || continue # it has just gone
  # one that ends again and again is in no network between two starts, and would be at the next
  [ "${has%% *}" = false ] || docker stop --time 20 "$container" >/dev/null 2>&1 || :
  for network in ${has#* }; do
    said=$(docker network disconnect "$network" "$container" 2>&1 >/dev/null) ||
      failed="$container could not be taken off the network $network: $said ($(cure "$said"))"
  done
done
[ -z "$failed" ] || fail "$failed"
