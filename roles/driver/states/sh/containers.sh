# One line for each container that has the GPU's device files, whether it has them open or not: its first process, the
# 12 digits by which docker and its kin know it or "-", all its processes with commas between, its first one's name.
# A container, whoever runs it, has mounts of its own (so it is in another mount namespace) and another root directory
# than the host: systemd's sandboxed services have the host's, and snaps, told by their cgroup, see the host's devices
# whether they use them or not. `find -H` gives device and inode of what the links in /proc lead to.
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
  echo "$p $(printf %.12s "${id:--}") $all $name"
done; exit 0
