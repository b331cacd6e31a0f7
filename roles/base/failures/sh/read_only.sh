# "mount" POINT TYPE OPTIONS of each filesystem that is read-only now (of several on a mount point, the topmost), and
# "fstab" POINT OPTIONS as configured.
awk '{ last[$2] = $3 " " $4 } END {
  for (m in last) if (last[m] ~ /[ ,](emergency_)?ro(,|$)/) print "mount", m, last[m]
}' /proc/self/mounts
awk '$1 !~ /^#/ && NF >= 4 { print "fstab", $2, $4 }' /etc/fstab; exit 0
