# One line for each container that has the GPU's device files, open or not: its first process, its 12-digit id in docker
# and similar engines or "-", all its processes separated by commas, its name in Docker, podman or LXC or "-",
# and its first process's name. An engine is asked only where it runs already: a question would start Docker by its socket.
# A container, whoever runs it, has a mount namespace of its own and another root directory than the host. systemd's
# sandboxed services have the host's root; snaps, recognised by their cgroup, see the host's devices whether they use
# them or not. `find -H` gives device and inode of the targets of links in /proc.
# Most hosts have no process with another root, which the shell sees by itself.
others=''
for process in /proc/[0-9]*; do
  # shellcheck disable=SC3013  # every sh of a distribution has it
  [ "$process/root" -ef / ] || { others=yes; break; }
done
names() {
  if [ -e /run/docker.pid ]; then # whatever context root has
    DOCKER_HOST=unix:///var/run/docker.sock timeout 5 docker ps --no-trunc --format '{{.ID}} {{.Names}}'
  fi
  if [ -d /run/libpod ]; then timeout 5 podman ps --no-trunc --format '{{.ID}} {{.Names}}'; fi
} 2>/dev/null
named=
[ -z "$others" ] ||
find -H /proc/self/ns/mnt /proc/self/root /proc/[0-9]*/ns/mnt /proc/[0-9]*/root -maxdepth 0 -printf '%D:%i %p\n' |
awk -F'[ /]' '$5 == "ns" { space[$4] = $1 } $5 == "root" { root[$4] = $1 } END {
  for (p in root) {
    s = space[p]; r = root[p]
    if (s == "" || s == space[1] || s == space["self"] || r == root["self"]) continue
    if (!(r in first) || p + 0 < first[r] + 0) first[r] = p
    all[r] = all[r] "," p
  }
  for (r in first) print first[r], substr(all[r], 2)
}' | sort -n | while read -r p all; do
  [ -e "/proc/$p/root/dev/nvidiactl" ] || [ -e "/proc/$p/root/dev/nvidia0" ] || continue
  read -r name <"/proc/$p/comm" || continue
  if grep -q '/snap[.][^/]*$' "/proc/$p/cgroup"; then continue; fi
  id=$(grep -oE -m 1 '[0-9a-f]{64}' "/proc/$p/cgroup")
  [ -n "$named" ] || [ -z "$id" ] || named=" $(names)"
  if [ -n "$id" ]; then
    called=$(printf '%s\n' "${named# }" | sed -n "s/^$id //p")
  else
    called=$(sed -nE 's,^.*:/lxc(\.payload\.|/)([^/]+).*,\2,p' "/proc/$p/cgroup" | head -n 1)
  fi
  echo "$p $(printf %.12s "${id:--}") $all ${called:--} $name"
done; :
