# Take the models of these workspaces off a host: their servers let them go first, where they still run, each version
# once its last request has ended.
: "${names:?}"
: "${state:?}"
: "${patience:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
eval "set -- $names"
for name; do
  models=$state/$name/models
  if [ -d "$models" ]; then
    echo 'model_config_list {}' >"$models/.models.config.new"
    chmod 644 -- "$models/.models.config.new"
    mv -f -- "$models/.models.config.new" "$models/models.config"
    rm -f -- "$models/models.config.former"
  fi
done
holds() { # PORT NAME: the server has a version that it did not let go yet
  get "$1" "/v1/models/$2" | grep -qE '"state": *"(LOADING|AVAILABLE|UNLOADING)"'
}
rows=$(timeout 20 docker ps --filter label=hostwright.kind=serving \
  --format '{{.Label "hostwright.workspace"}} {{.Label "hostwright.port"}}' 2>/dev/null) || rows= # nobody can be asked
waited=0
for name; do
  port=$(printf '%s\n' "$rows" | awk -v name="$name" '$1 == name { print $2 }')
  while [ -n "$port" ] && [ "$waited" -lt "$patience" ] && holds "$port" "$name"; do
    waited=$((waited + 1))
    sleep 1
  done
done
for name; do
  must "the models of $name could not be removed" rm -rf -- "${state:?}/$name/models/$name" "${state:?}/$name/models/versions"
done
