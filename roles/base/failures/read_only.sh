# "mount" POINT TYPE OPTIONS of each filesystem that is read-only now, the topmost of those on one point, and "fstab"
# POINT OPTIONS of what was asked for.
awk '{ last[$2] = $3 " " $4 } END {
  for (m in last) if (last[m] ~ /[ ,](emergency_)?ro(,|$)/) print "mount", m, last[m]
}' /proc/self/mounts
awk '$1 !~ /^#/ && NF >= 4 { print "fstab", $2, $4 }' /etc/fstab; exit 0
