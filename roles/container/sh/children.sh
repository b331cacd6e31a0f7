# children PIDS: "children PID NUMBER" for each of these first processes of containers whose program has started others:
# kernels, terminals, sessions. What has ended counts for nothing, and Docker's own init is no program.
# children_of_all: of every container that containerd started.
# shellcheck disable=SC2016  # awk's own
_children='
  BEGIN { count = split(pids, list); for (i = 1; i <= count; i++) first[list[i]] = 1 }
  $1 == "Name:" { name = $2 }
  $1 == "State:" { dead = $2 == "Z" }
  $1 == "Pid:" { pid = $2; names[pid] = name }
  $1 == "PPid:" && !dead { parent[pid] = $2 }
  END {
    if (all) for (pid in parent) if (names[parent[pid]] ~ /^containerd-shim/) first[pid] = 1
    for (pid in first) if (names[pid] == "docker-init") program[pid] = 0
    for (pid in parent) { # the program is the one that init started first
      above = parent[pid]
      if ((above in program) && (!program[above] || pid + 0 < program[above])) program[above] = pid + 0
    }
    for (pid in program) if (program[pid]) { init[program[pid]] = pid; children[pid] = -1 }
    for (pid in parent) {
      above = parent[pid]
      if (above in init) above = init[above]
      if (above in first) children[above]++
    }
    for (pid in children) if (children[pid] > 0) print "children", pid, children[pid]
  }'
children() { cat /proc/[0-9]*/status 2>/dev/null | awk -v pids="$1" "$_children"; }
children_of_all() { cat /proc/[0-9]*/status 2>/dev/null | awk -v all=1 "$_children"; }
