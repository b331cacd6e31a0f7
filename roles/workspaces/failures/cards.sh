# What nvidia-smi says in each running workspace that was given GPUs: "NAME ANSWER", its first line. A stopped daemon is
# not queried: a query would start it.
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
read -r pid 2>/dev/null </run/docker.pid && [ -d "/proc/$pid" ] || exit 0
timeout 20 docker ps --no-trunc --filter label=hostwright.workspace --format \
  '{{.Label "hostwright.workspace"}} {{.ID}} {{.Label "hostwright.gpus"}}' |
  while read -r name id gpus; do
    [ -n "$gpus" ] || continue
    printf '%s ' "$name"
    timeout 10 docker exec "$id" nvidia-smi -L </dev/null 2>&1 | head -n 1 | cut -c1-200
  done
exit 0
