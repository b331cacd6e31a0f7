# What the host has of JupyterHub, a line each, its words between tabs, with "end" as the last: "docker absent" or
# "docker silent", "server USER PORT GPUS STATE PID", "children PID NUMBER", "network SUBNET", "image NAME:TAG".
: "${network:?}"
: "${images:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
command -v docker >/dev/null 2>&1 || { printf 'docker\tabsent\nend\n'; exit 0; }
ids=$(timeout 20 docker ps -aq --no-trunc --filter label=hostwright.hub) || { printf 'docker\tsilent\nend\n'; exit 0; }
if [ -n "$ids" ]; then
  # one that has just gone is no longer known: status 1
  # shellcheck disable=SC2086
  rows=$(timeout 30 docker inspect --format "{{index .Config.Labels \"hostwright.hub\"}}	{{index .Config.Labels \"hostwright.port\"}}	{{index .Config.Labels \"hostwright.gpus\"}}	{{.State.Status}}	{{.State.Pid}}" $ids) ||
    [ $? -eq 1 ] || printf 'docker\tsilent\n'
  printf '%s\n' "$rows" | sed 's/^/server	/'
  pids=$(printf '%s\n' "$rows" | sed -n 's/.*	\([1-9][0-9]*\)$/\1/p')
  [ -z "$pids" ] || cat /proc/[0-9]*/status 2>/dev/null | awk -v pids="$pids" '
    BEGIN { count = split(pids, list); for (i = 1; i <= count; i++) first[list[i]] = 1 }
    $1 == "State:" { ended = $2 == "Z" }
    $1 == "PPid:" && ($2 in first) && !ended { children[$2]++ }
    END { for (pid in children) printf "children\t%s\t%s\n", pid, children[pid] }'
fi
subnet=$(timeout 20 docker network inspect --format '{{range .IPAM.Config}}{{.Subnet}}{{end}}' "$network" 2>/dev/null) &&
  printf 'network\t%s\n' "$subnet"
timeout 20 docker image ls --format '{{.Repository}}:{{.Tag}}' "$images" | sed 's/^/image	/'
echo end
