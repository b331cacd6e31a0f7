# How a change of workspaces fails: with one line that names what it is about, what was done, what Docker said and what to
# do now. What a half-made change leaves is taken away first (`undo`, which says in `$after` what is left).
: "${what:?}"
: "${error:?}"
why='' after=''
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
docker() { # a daemon that hangs would keep the step for ever; in a stop, 20 s are the container's own
  timeout 90 docker "$@" && return
  docker_status=$?
  [ "$docker_status" -ne 124 ] || echo 'Docker did not answer within 90 s' >&2
  return "$docker_status"
}
undo() { :; }
ended() {
  status=$?
  trap - EXIT TERM
  if [ "$status" -ne 0 ]; then
    undo >/dev/null 2>&1 || :
    [ -z "$why" ] || printf '\n%s%s: %s%s\n' "$error" "$what" "$why" "$after"
  fi
  exit "$status"
}
trap ended EXIT
trap 'why="it was not done in time (systemctl status docker tells how Docker is)"; exit 143' TERM
fail() {
  why=$*
  exit 1
}
cure() { # what to do about what a program said
  case $1 in
  *'no space left on device'* | *'No space left on device'*)
    echo 'free space on the host (df -h), or inodes (df -i), then run the same command again' ;;
  *'port is already allocated'* | *'address already in use'*)
    echo 'another program has its port: ss -ltnp on the host names it; end that, or give the workspace another (port: …)' ;;
  *'ange of CPUs'*) echo 'give it fewer (cpus: …)' ;;
  *'emory limit'* | *memory.limit_in_bytes* | *memory.max*) echo 'give it another limit (memory: …)' ;;
  *'pair interfaces: operation not supported'*)
    echo 'the running kernel has lost its modules, as after an update: reboot the host' ;;
  *'annot allocate memory'*) echo 'the kernel has no memory left for control groups: reboot the host' ;;
  *nvidia-container-runtime*'not found'* | *nvidia-container-runtime*'no such file'*)
    echo "the host has lost nvidia-container-runtime: \`invoke provision --roles container\` puts it back" ;;
  *'executable file not found'*) echo 'the image does not have this program: name another (image: …)' ;;
  *'exec format error'*)
    echo 'the program is for another kind of processor, or a script without #! in its first line: name another image' ;;
  *'source path does not exist'*) echo 'make that directory on the host, or take it out of mounts' ;;
  *'ead-only file system'*)
    echo 'the host cannot write there: look at dmesg and mount -o remount,rw, or set workspaces_directory' ;;
  *'already in use by container'*) echo 'another container has its name: docker rm it, or give the workspace another name' ;;
  *'o chain/target/match by that name'*)
    echo "somebody flushed Docker's rules from the host's firewall: systemctl restart docker sets them, and ends containers" ;;
  *'active endpoints'*)
    echo 'another container is in the network: docker network inspect names it; docker network disconnect -f takes it out' ;;
  *'overlapping IPv4 address pool'* | *'address pools have been fully subnetted'*)
    used=$(docker ps -a --format '{{.Networks}}' 2>/dev/null | tr , '\n')
    unused=$(docker network ls --filter type=custom --format '{{.Name}}' 2>/dev/null | grep -vxF -e "$used" | head -n 10 | tr '\n' ' ')
    [ -z "$unused" ] || unused=", or take away those that no container is in: docker network rm $unused"
    echo "give Docker more addresses: default-address-pools in /etc/docker/daemon.json, then systemctl restart docker${unused% }" ;;
  *'did not answer'* | *'annot connect to the Docker daemon'* | *containerd*)
    echo 'systemctl status docker containerd and journalctl -u docker on the host say why; systemctl restart docker' ;;
  *) echo 'journalctl -u docker on the host says more' ;;
  esac
}
must() { # SENTENCE COMMAND…
  doing=$1
  shift
  said=$("$@" 2>&1 >/dev/null) || fail "$doing: $(printf '%s' "${said:-status $?}" |
    tr -s '[:space:]' ' ' | tail -c 700) ($(cure "$said"))"
}
