# holders: the processes that hold a device file of NVIDIA's open. service PID: sets $unit to the system's unit that the
# process belongs to, such as nvidia-persistenced.service, or to "-"; and $container to the container of Docker's or
# podman's that it is in, such as docker/ID, or to "-"; and $person to "ops/jupyter.service" for a unit of ops' own systemd,
# to "ops/-" for another process of a login of ops', or to "-". Whoever starts a process chooses its name and its program; its
# control group is root's to give, but those below user.slice and below a unit are named by others. A line is one of
# cgroup v1 ("1:name=systemd:/…") or v2 ("0::/…"); a host that has both says "/docker/ID" in v1's lines, and
# "/system.slice/containerd.service" in v2's, of the same process. Slurm's jobs on
# v1 are below slurmd's unit in systemd's line only.
holders() {
  last='' links=$(find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null) || :  # of a process that has just ended
  for link in $links; do
    process=${link#/proc/} process=${process%%/*}
    [ "$process" = "$last" ] || echo "$process"
    last=$process
  done
}
# called PID NAME: sets $program to the name and, of an interpreter, the file or the module that it runs. Never another
# argument, which may be a secret, and no directory.
# shellcheck disable=SC2034  # for whoever calls it
called() {
  program=$2
  case $2 in python* | perl* | ruby* | node | java | Rscript | bash | sh) ;; *) return ;; esac
  script=$(tr '\0' '\n' <"/proc/$1/cmdline" | sed -n '2,8{/^-c$/q; /^-/d; s:.*/::; /^[A-Za-z0-9._-]\{1,60\}$/p; q}') || :
  program="$2${script:+ $script}"
} 2>/dev/null
# shellcheck disable=SC2034  # for whoever calls it
service() {
  unit=- container=- person=- inside=
  while IFS=: read -r _ hierarchy group; do
    case $group in
      /user.slice/* | *.service | *.service/*) ;;
      */docker/* | */docker-*.scope*) inside=yes container=docker/${group#*/docker[/-]} ;;
      */libpod-*) inside=yes container=podman/${group#*/libpod-} ;;
      */kubepods* | /lxc* | */job_*/step_*) inside=yes ;;
    esac
    case $hierarchy:$group in
      :/system.slice/*.service* | name=systemd:/system.slice/*.service*) unit=${group#/system.slice/} unit=${unit%%/*} ;;
      :/user.slice/user-*.slice/* | name=systemd:/user.slice/user-*.slice/*)
        person=${group#/user.slice/user-} own=${group##*.slice/}
        person=${person%%.*} own=${own#user@*.service/}
        person=$(id -nu -- "$person" || echo "$person")/
        case ${own%%/*} in user@* | *.scope | '') person=${person}- ;; *) person=$person${own%%/*} ;; esac
        continue ;;
      *) continue ;;
    esac
    case $unit in *.service) ;; *) unit=- ;; esac
  done 2>/dev/null <"/proc/$1/cgroup" || :
  [ -z "$inside" ] || unit=-
  inside=${container#*/} inside=${inside%%/*} inside=${inside%%.scope*}
  case $inside in '' | *[!0-9a-f]*) container=- ;; *) container=${container%%/*}/$inside ;; esac
}
