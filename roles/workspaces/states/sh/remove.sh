# Take workspaces off a host: their containers, root's files of them, networks that nobody's container is in any more,
# and images that were built for them. People's files are not touched.
: "${names?}"
: "${networks?}"
: "${images?}"
: "${state:?}"
eval "set -- $names"
for name; do
  unit=hostwright-batch@$name.service
  systemctl stop -- "$unit" 2>/dev/null || :
  rm -f -- "/etc/systemd/system/multi-user.target.wants/$unit"
  for container in "workspace-$name" "workspace-$name.new" "workspace-$name.old"; do
    if docker container inspect "$container" >/dev/null 2>&1; then
      docker stop --time 20 "$container" >/dev/null || :
      docker rm -f "$container" >/dev/null
    fi
  done
  rm -rf -- "${state:?}/$name"
done
eval "set -- $networks"
for network; do
  if docker network inspect "$network" >/dev/null 2>&1; then docker network rm "$network" >/dev/null; fi
done
eval "set -- $images"
for image; do
  if docker image inspect "$image" >/dev/null 2>&1; then docker image rm "$image" >/dev/null; fi
done
