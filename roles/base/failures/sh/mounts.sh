# "mount" POINT TYPE OPTIONS of each filesystem that is read-only now (of several on a mount point, the topmost), "noexec"
# likewise for one of the $programs from which nothing may be run, "fstab" POINT OPTIONS as configured, "absent" POINT SOURCE
# OPTIONS of those that are configured and not mounted, "device" instead of it where the source is not there, and "mode"
# DIRECTORY MODE of those that everybody writes to.
: "${programs:?}"
: "${shared:?}"
eval "set -- $programs"
awk -v programs="$* " '{ last[$2] = $3 " " $4 } END {
  for (m in last) {
    if (last[m] ~ /[ ,](emergency_)?ro(,|$)/) print "mount", m, last[m]
    if (last[m] ~ /[ ,]noexec(,|$)/ && index(programs, m " ")) print "noexec", m, last[m]
  }
}' /proc/self/mounts
awk 'NR == FNR { mounted[$2] = 1; next }
  $1 !~ /^#/ && NF >= 4 { print "fstab", $2, $4 }
  $1 !~ /^#/ && NF >= 4 && $2 ~ /^\/./ && !($2 in mounted) && $4 !~ /(^|,)(noauto|x-systemd.automount)(,|$)/ {
    print "absent", $2, $1, $4 }' /proc/self/mounts /etc/fstab 2>/dev/null |
  while read -r kind point source options; do
    place=
    case $kind:$source in
      absent:UUID=*) place=/dev/disk/by-uuid/${source#*=} ;;
      absent:LABEL=*) place=/dev/disk/by-label/${source#*=} ;;
      absent:PARTUUID=*) place=/dev/disk/by-partuuid/${source#*=} ;;
      absent:PARTLABEL=*) place=/dev/disk/by-partlabel/${source#*=} ;;
      absent:/dev/*) place=$source ;;
    esac
    if [ -n "$place" ] && [ ! -e "$place" ]; then kind=device; fi
    printf '%s %s %s\n' "$kind" "$point" "$source${options:+ $options}"
  done
eval "set -- $shared"
stat -L -c 'mode %n %a' -- "$@" 2>/dev/null
exit 0
