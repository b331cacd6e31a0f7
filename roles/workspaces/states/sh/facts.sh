# What the host has of workspaces, a line each, with "end" as the last: "docker absent" or "docker silent" (whatever it
# then lacks is not known), "container JSON", "image ID NAME:TAG NAME@DIGEST", "network NAME", "listen ADDRESS:PORT",
# "children PID NUMBER" of the containers' programs by their first process, "killed PID" of those in which the kernel
# ended a program for want of memory (Docker may say so only of what has ended), "driver VERSION" of the GPUs where module
# and libraries of the host agree, "libraries PID VERSION" of those in a container, "definition NAME JSON", "batch NAME" of
# one in the queue, "waits NAME WHY" of one in it and of one that Docker did not start, "lately TIME": Docker takes a
# program that has run for ten seconds as one that works. Of a definition, each of whose fields is a line, what is as long
# as a script may be is left out. It needs `children` of children.sh.
: "${state:?}"
: "${format:?}"
: "${batch:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
for folder in "$state"/*/; do
  [ -d "$folder" ] || continue
  name=${folder%/}
  printf 'definition %s ' "${name##*/}"
  awk 'length($0) < 4096 || !/,$/' "$folder/definition.json" 2>/dev/null | head -c 65536 | tr '\n' ' '
  echo
done
systemctl list-units --plain --no-legend 'hostwright-batch@*.service' 2>/dev/null |
  sed -n 's/.*hostwright-batch@\([a-z0-9-]*\)\.service.* \(active\|activating\|failed\) .*/\1 \2/p' |
  while read -r name state; do
    ask=why
    if [ "$state" = failed ]; then ask=refused; else echo "batch $name"; fi
    why=$("$batch" "$name" "$ask" 2>/dev/null | head -c 200 | tr '\n' ' ')
    [ -z "$why" ] || echo "waits $name $why"
  done
ss -Hltn 2>/dev/null | awk '{ print "listen", $4 }'
command -v docker >/dev/null 2>&1 || { echo "docker absent"; echo end; exit 0; }
ids=$(timeout 20 docker ps -aq --no-trunc --filter label=hostwright.workspace) || {
  echo "docker silent"
  echo end
  exit 0
}
if [ -n "$ids" ]; then
  date -u -d '-10 seconds' '+lately %Y-%m-%dT%H:%M:%S'
  # one that has just gone is no longer known: status 1
  # shellcheck disable=SC2086
  rows=$(timeout 30 docker inspect --format "$format" $ids) || [ $? -eq 1 ] || echo "docker silent"
  printf '%s\n' "$rows"
  pids=$(printf '%s\n' "$rows" | sed -n 's/.*"pid":\([1-9][0-9]*\).*/\1/p')
  [ -z "$pids" ] || children "$pids"
  module=
  { read -r module </sys/module/nvidia/version; } 2>/dev/null || :
  file=$(readlink -f /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1)
  [ -z "$module" ] || [ "${file##*libnvidia-ml.so.}" != "$module" ] || echo "driver $module"
  for pid in $pids; do # control groups of version 2 or 1, as the container sees its own
    process=/proc/$pid
    group=$process/root/sys/fs/cgroup
    ! grep -qs '^oom_kill [1-9]' "$group/memory.events" "$group/memory/memory.oom_control" || echo "killed $pid"
    # NVIDIA's runtime mounts each file of the host where the container has it, as it was at the container's start
    sed -n "s,.* /[^ ]*/libnvidia-ml\\.so\\.\\([0-9][0-9.]*\\) .*,libraries $pid \\1,p" "$process/mountinfo" 2>/dev/null
  done
fi
timeout 20 docker image ls --no-trunc --digests \
  --format 'image {{.ID}} {{.Repository}}:{{.Tag}} {{.Repository}}@{{.Digest}}' || echo "docker silent"
timeout 20 docker network ls --filter label=hostwright.workspaces --format 'network {{.Name}}' || echo "docker silent"
echo end
