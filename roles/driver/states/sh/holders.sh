# holders: the processes that hold a device file of NVIDIA's open. service PID: sets $unit to the system's unit that the
# process belongs to, such as nvidia-persistenced.service, or to "-". Whoever starts a process chooses its name and its
# program; its control group is root's to give, and users' own units lie below user.slice. A line with a file name in it
# may be a line of cgroup v1 ("1:name=systemd:/…") or v2 ("0::/…").
holders() {
  last='' links=$(find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null) || :  # of a process that has just ended
  for link in $links; do
    process=${link#/proc/} process=${process%%/*}
    [ "$process" = "$last" ] || echo "$process"
    last=$process
  done
}
# shellcheck disable=SC2034  # for whoever calls it
service() {
  unit=-
  while IFS=: read -r _ hierarchy group; do
    case $hierarchy:$group in
      :/system.slice/*.service* | name=systemd:/system.slice/*.service*) unit=${group#/system.slice/} unit=${unit%%/*} ;;
      *) continue ;;
    esac
    case $unit in *.service) ;; *) unit=- ;; esac
  done 2>/dev/null <"/proc/$1/cgroup" || :
}
