# Stops the containers of Docker's and podman's whose processes hold the GPU: the engine must know of it, since a killed
# process is a failure to it, after which a container with a restart policy comes back in the middle. Engine, id and name
# of each are kept in $units for `returned.sh`. One that its engine does not stop is ended with the other holders.
: "${units:?}"
for p in $(holders); do
  service "$p"
  # shellcheck disable=SC2154  # of holders.sh
  [ "$container" = - ] || echo "$container"
done | sort -u | while IFS=/ read -r engine id; do
  name=$(timeout 10 "$engine" inspect --format '{{.Name}}' "$id") || continue
  echo "$engine/$id/${name#/}" >>"$units"
  timeout 120 "$engine" stop "$id" >/dev/null || true  # it takes its container's time, ten seconds where it has none
done
