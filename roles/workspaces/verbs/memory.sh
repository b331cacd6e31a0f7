# Say in words where the kernel ended programs of a workspace for want of memory since its container was started. Docker
# says so of a container that has ended; of one that runs, its control group does, in version 2 or 1 of them.
: "${name:?}"
: "${container:?}"
: "${limit?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
known=$(docker container inspect --format '{{.State.Pid}} {{.State.OOMKilled}}' "$container" 2>/dev/null) || known='0 false'
group=/proc/${known% *}/root/sys/fs/cgroup
killed=$(cat -- "$group/memory.events" "$group/memory/memory.oom_control" 2>/dev/null | sed -n 's/^oom_kill //p' | head -n 1)
if [ "${killed:-0}" -gt 0 ] || [ "${known#* }" = true ]; then
  took='more memory than the host had left'
  [ -z "$limit" ] || took="more memory than it may (memory: $limit)"
  echo "workspace $name: it took $took, and the kernel ended a program of it (a notebook's kernel, a part of a script):" \
    "let it take less at once, or give it more (memory: …)"
fi
