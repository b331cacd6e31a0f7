# Boots the host again as long as it asks for that: nspawn ends with 133 on `reboot`. Its death takes nspawn with it,
# but not the host's PID 1, which `_orphaned` then knows by its parent.
# Mounts of other hosts are taken out of its own view first: a copy of one would keep a disk in use, and its space
# taken, for as long as this host runs (nspawn hides copies where no mountinfo shows them).
# $1: the folder of all labs, $2: that of this host, then the command that boots it.
awk -v labs="$1/" -v own="$2/" 'index($5, labs) == 1 && index($5, own) != 1 { print $5 }' /proc/self/mountinfo |
    xargs -r umount --lazy
shift 2
status=133
while [ "$status" -eq 133 ]; do status=0; setpriv --pdeathsig KILL "$@" || status=$?; done
