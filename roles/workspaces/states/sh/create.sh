# Make the container of a workspace, beside the one that it replaces: that one comes back if the new one does not answer.
# Nothing is stopped before everything that the new one needs is there. Its definition is written last. It needs
# `make_network` of network/make.sh.
: "${name:?}"
: "${user:?}"
: "${uid:?}"
: "${gid:?}"
: "${groups?}"
: "${directory:?}"
: "${state:?}"
: "${kind:?}"
: "${image:?}"
: "${reference:?}"
: "${interpreter?}"
: "${zone?}"
: "${pull?}"
: "${sources?}"
: "${files?}"
: "${arguments:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
container=workspace-$name
exists() { docker container inspect "$1" >/dev/null 2>&1; }

had='' ran='' halted='' replaced='' stood='' made='' # what there was, and what this change has done so far
back() {
  if [ -n "$replaced" ]; then # the container of its name is the new one only while the old one stands beside it
    exists "$container.old" || return 1
    ! exists "$container" || docker rm -f "$container" || return 1
    docker rename "$container.old" "$container" || return 1
  fi
  [ -z "$ran" ] || docker start "$container"
}
unmake() {
  while [ $# -gt 1 ]; do
    case $1 in
    network) docker network rm "$2" || : ;;
    state) rm -rf -- "${2:?}" ;;
    *) rmdir -- "$2" || : ;; # people's files stay
    esac
    shift 2
  done
}
undo() {
  docker rm -f "$container.new" || :
  if [ -n "$had" ] && [ -z "$halted" ]; then
    after='; it goes on as it was'
  elif [ -n "$had" ]; then
    after='; what it had before is not back: fix the cause and run the same command again'
    ! back || after='; it is as it was before'
  else
    after='; what is left of it goes when the same command is run again'
    [ -z "$stood" ] || docker rm -f "$container" || return 0
    eval "unmake $made"
    # shellcheck disable=SC2034  # failing.sh says it
    after='; nothing of it was left running'
  fi
}

if exists "$container.old"; then # an earlier change was cut between the two
  docker rm -f "$container" >/dev/null 2>&1 || :
  must "the container that it had could not be put back" docker rename "$container.old" "$container"
fi
! exists "$container" || had=yes

eval "set -- $sources"
for source; do
  [ -d "$source" ] || fail "$source, which it mounts, is no directory of this host: make it there, or take it out of mounts"
  real=$(readlink -f -- "$source")
  [ "$real" = "$source" ] || fail "$source leads to $real: mount that directory by its own name"
done
if ! docker image inspect "$image" >/dev/null 2>&1; then
  [ -n "$pull" ] || fail "the image $image is not on this host any more: bring it with images.push"
  must "the image $image could not be pulled" timeout 840 docker pull -q "$image"
fi

for folder in "${directory%/*}" "$directory"; do
  [ ! -L "$folder" ] || fail "$folder is a link, where a directory for people's files must be: take the link away"
  [ -d "$folder" ] || {
    must "$folder could not be made" mkdir -m 700 -- "$folder"
    made="folder '$folder' $made"
  }
done
own() { # the person's directory is theirs, the one above root's
  chown root:root -- "${directory%/*}" && chmod 711 -- "${directory%/*}" &&
    chown "$uid:$gid" -- "$directory" && chmod 700 -- "$directory"
}
must "$directory could not be given to $user" own

[ -d "$state" ] || {
  must "$state could not be made" mkdir -m 711 -- "$state"
  made="state '$state' $made"
}
put() { # FILE MODE OWNER TEXT; cat says why it cannot write, which the shell's own printf does not
  (umask 077 && printf '%s' "$4" | cat >"$state/.$1.new") && chown "$3" -- "$state/.$1.new" &&
    chmod "$2" -- "$state/.$1.new" && mv -f -- "$state/.$1.new" "$state/$1"
}
written() { must "$state/$1 could not be written" put "$@"; }
eval "set -- $files"
while [ $# -ge 3 ]; do
  written "$1" "$2" root:root "$3"
  shift 3
done
full_name=$(getent passwd -- "$uid" | cut -d: -f5 | cut -d, -f1) || : # git takes no commit of somebody without one
written passwd 644 root:root "root:x:0:0:root:/root:/bin/bash
$user:x:$uid:$gid:${full_name:-$user}:/workspace:/bin/bash
sshd:x:65533:65533::/run/sshd:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"
eval "set -- $groups"
further=''
for group; do further="${further}group$group:x:$group:$user
"; done
written group 644 root:root "root:x:0:
tty:x:5:
$user:x:$gid:
${further}nogroup:x:65534:
"
if [ -e "$state/token" ] && [ "$(stat -c %u -- "$state/token")" != "$uid" ]; then # another's until now, who knows them
  must "what its former owner knows could not be taken away" \
    rm -f -- "$state/token" "$state/host_key" "$state/host_key.pub"
fi
if [ -s "$state/token" ]; then token=$(cat -- "$state/token"); else
  token=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
fi
written token 600 "$uid:$gid" "$token"
if [ "$kind" = serving ] && [ ! -s "$state/models/models.config" ]; then # it starts without a model
  without_model() {
    mkdir -p -- "$state/models" && chmod 755 -- "$state/models" &&
      echo 'model_config_list {}' | cat >"$state/models/models.config" && chmod 644 -- "$state/models/models.config"
  }
  must "$state/models/models.config could not be written" without_model
fi
if [ "$kind" = ssh ] && [ ! -s "$state/host_key" ]; then # once, so that people know the box again
  rm -f -- "$state/.host_key" "$state/.host_key.pub"
  must "its SSH host key could not be made" ssh-keygen -q -t ed25519 -N '' -C "workspace $name" -f "$state/.host_key"
  mv -f -- "$state/.host_key.pub" "$state/host_key.pub"
  mv -f -- "$state/.host_key" "$state/host_key"
fi
[ "$kind" != ssh ] || # as the token: sshd is the person's, too
  must "its SSH host key could not be given to $user" chown "$uid:$gid" -- "$state/host_key"

zoneinfo=/usr/share/zoneinfo zone_file='' # without the zone's file, programs show UTC under the zone's name
if [ -n "$zone" ] && [ -f "$zoneinfo/$zone" ]; then
  copied() {
    cat -- "$zoneinfo/$zone" >"$state/.zone.new" && chmod 644 -- "$state/.zone.new" &&
      mv -f -- "$state/.zone.new" "$state/zone"
  }
  must "$state/zone could not be written" copied
  zone_file=--mount=type=bind,source=$state/zone,target=$zoneinfo/$zone,readonly
fi

make_network

docker rm -f "$container.new" >/dev/null 2>&1 || :
locale=--env=LANG=C.UTF-8 # where the image names none, programs know no letters beyond ASCII
! docker image inspect --format '{{range .Config.Env}}{{println .}}{{end}}' "$image" |
  grep -qE '^(LANG|LC_ALL|LC_CTYPE)=.' || locale=''
eval "set -- $arguments"
must "Docker does not make its container" docker create --name "$container.new" ${locale:+"$locale"} \
  ${zone_file:+"$zone_file"} "$@"

has_file() { # PATH: whether the new container has it, from its image or a mount; also where Docker does not say
  said=$(docker cp -L "$container.new:$1" - 2>&1 >/dev/null) && return
  case $said in *'o such container:path'* | *'ould not find the file'*) return 1 ;; esac
}
has_program() { # PATH, or a NAME that PATH of the container leads to
  case $1 in /*)
    has_file "$1"
    return
    ;;
  esac
  places=$(docker container inspect --format '{{range .Config.Env}}{{println .}}{{end}}' "$container.new" |
    sed -n 's/^PATH=//p' | tail -n 1)
  places=${places:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}:
  while [ -n "$places" ]; do
    place=${places%%:*} places=${places#*:}
    case $place/ in /workspace/*) return 0 ;; esac # where the person may put it before the run begins
    ! has_file "$place/$1" || return 0
  done
  return 1
}
[ -z "$interpreter" ] || has_program "$interpreter" ||
  fail "the first line of its script names the interpreter $interpreter, which the image $reference does not have: \
name one that it has, or another image (image: …)"
[ -z "$zone" ] || [ -n "$zone_file" ] || has_file "$zoneinfo/$zone" ||
  fail "neither the image $reference nor this host has the time zone $zone (TZ): install tzdata on the host, and \
tzdata-legacy for names such as US/Eastern"

if [ -n "$had" ]; then
  ran=$(docker container inspect --format '{{if .State.Running}}yes{{end}}' "$container")
  halted=yes
  must "the container that it had does not stop" docker stop --time 20 "$container"
  must "the container that it had could not be set aside" docker rename "$container" "$container.old"
  replaced=yes
fi
must "the new container could not take its place" docker rename "$container.new" "$container"
stood=yes
