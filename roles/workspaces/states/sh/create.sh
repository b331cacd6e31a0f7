# Make the container of a workspace, beside the one that it replaces: that one comes back if the new one does not answer.
# Nothing is stopped before everything that the new one needs is there. Its definition is written last.
: "${name:?}"
: "${user:?}"
: "${uid:?}"
: "${gid:?}"
: "${directory:?}"
: "${state:?}"
: "${network:?}"
: "${bridge:?}"
: "${closed:?}"
: "${kind:?}"
: "${image:?}"
: "${pull?}"
: "${sources?}"
: "${files?}"
: "${arguments:?}"
container=workspace-$name
exists() { docker container inspect "$1" >/dev/null 2>&1; }
fail() {
  echo "workspace $name: $*" >&2
  exit 1
}

eval "set -- $sources"
for source; do
  [ -d "$source" ] || fail "$source, which it mounts, is no directory of this host"
  real=$(readlink -f -- "$source")
  [ "$real" = "$source" ] || fail "$source leads to $real: mount that directory by its own name"
done
if ! docker image inspect "$image" >/dev/null 2>&1; then
  [ -n "$pull" ] || fail "the image $image is not on this host any more"
  docker pull -q "$image" || fail "the image $image could not be pulled"
fi

for folder in "${directory%/*}" "$directory"; do
  [ ! -L "$folder" ] || fail "$folder is a link, where a directory for people's files must be"
  [ -d "$folder" ] || mkdir -m 700 -- "$folder"
done
chown root:root -- "${directory%/*}"
chmod 711 -- "${directory%/*}"
chown "$uid:$gid" -- "$directory"
chmod 700 -- "$directory"

[ -d "$state" ] || mkdir -m 711 -- "$state"
put() { # FILE MODE OWNER TEXT
  (umask 077 && printf '%s' "$4" >"$state/.$1.new")
  chown "$3" -- "$state/.$1.new"
  chmod "$2" -- "$state/.$1.new"
  mv -f -- "$state/.$1.new" "$state/$1"
}
eval "set -- $files"
while [ $# -ge 3 ]; do
  put "$1" "$2" root:root "$3"
  shift 3
done
put passwd 644 root:root "root:x:0:0:root:/root:/bin/bash
$user:x:$uid:$gid::/workspace:/bin/bash
sshd:x:65533:65533::/run/sshd:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"
put group 644 root:root "root:x:0:
tty:x:5:
$user:x:$gid:
nogroup:x:65534:
"
if [ -s "$state/token" ]; then token=$(cat -- "$state/token"); else
  token=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
fi
put token 600 "$uid:$gid" "$token"
if [ "$kind" = serving ] && [ ! -s "$state/models/models.config" ]; then # it starts without a model
  mkdir -p -- "$state/models"
  chmod 755 -- "$state/models"
  echo 'model_config_list {}' >"$state/models/models.config"
  chmod 644 -- "$state/models/models.config"
fi
if [ "$kind" = ssh ] && [ ! -s "$state/host_key" ]; then # once, so that people know the box again
  rm -f -- "$state/.host_key" "$state/.host_key.pub"
  ssh-keygen -q -t ed25519 -N '' -C "workspace $name" -f "$state/.host_key"
  mv -f -- "$state/.host_key.pub" "$state/host_key.pub"
  mv -f -- "$state/.host_key" "$state/host_key"
fi

"$closed" || fail "the host's firewall does not take the rule that keeps others from its containers"
docker network inspect "$network" >/dev/null 2>&1 ||
  docker network create --label "hostwright.workspaces=$user" --driver bridge \
    --opt "com.docker.network.bridge.name=$bridge" \
    --opt com.docker.network.bridge.enable_icc=false "$network" >/dev/null

if exists "$container.old"; then # an earlier change was cut between the two
  docker rm -f "$container" >/dev/null 2>&1 || :
  docker rename "$container.old" "$container"
fi
docker rm -f "$container.new" >/dev/null 2>&1 || :
eval "set -- $arguments"
docker create --name "$container.new" "$@" >/dev/null

replaced='' ran=''
restore() {
  status=$?
  [ "$status" -ne 0 ] || return 0
  docker rm -f "$container.new" >/dev/null 2>&1 || :
  if [ -n "$replaced" ]; then
    docker rm -f "$container" >/dev/null 2>&1 || :
    docker rename "$container.old" "$container" 2>/dev/null || :
    [ -z "$ran" ] || docker start "$container" >/dev/null || :
    [ "$replaced" = new ] || echo "${why:-workspace $name: its container was not made}; it is as it was before" >&2
  fi
  exit "$status"
}
trap restore EXIT
if exists "$container"; then
  ran=$(docker container inspect --format '{{if .State.Running}}yes{{end}}' "$container")
  replaced=yes
  docker stop --time 20 "$container" >/dev/null
  docker rename "$container" "$container.old"
else
  replaced=new # there is nothing to come back, and what was half made goes
fi
docker rename "$container.new" "$container"
