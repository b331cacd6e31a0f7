# Bring a model server to other versions in stages (configuration, versions to wait for, live version), without a lost
# request: nothing is let go before what follows it answers. If a version does not load, the configuration from before
# is put back, so that the server goes on with it also when it starts again; it lies beside until the end, so that a
# start after a crash of the host finds it (start.sh of workspaces). Versions to $remove go at the end.
: "${name:?}"
: "${port:?}"
: "${state:?}"
: "${stages:?}"
: "${remove?}"
: "${patience:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
config=$state/models/models.config
container=workspace-$name
field() { sed -n "s/.*\"$1\": *\"\(.*\)\".*/\1/p" | head -n 1 | sed 's/\\\(["\\/]\)/\1/g'; }
put() { # TEXT FILE
  printf '%s\n' "$1" | cat >"$2.new" && chmod 644 -- "$2.new" && mv -f -- "$2.new" "$2"
}
written() { must "$2 could not be written" put "$@"; }
give_up() {
  echo "the last that its server printed:"
  docker logs --tail 15 "$container" 2>&1 | sed 's/^/| /' || :
  fail "$*"
}
alive() {
  now=$(docker container inspect --format '{{.State.Status}} {{.RestartCount}}' "$container") ||
    fail "Docker stopped answering in the middle ($(cure 'did not answer'))"
  [ "$now" = "running $began" ] || give_up "its server ended while it loaded ${1:-a version} ($now)"
}
loaded() { # VERSION
  waited=0
  while :; do
    answer=$(get "$port" "/v1/models/$name/versions/$1") || answer=
    case $(printf '%s' "$answer" | field state) in
    AVAILABLE) return ;;
    END) # for the first seconds it may be the end of an earlier life
      code=$(printf '%s' "$answer" | field error_code)
      if [ "$waited" -ge 5 ] && [ "$code" != OK ]; then
        give_up "version $1 does not load: $(printf '%s' "$answer" | field error_message) ($code)"
      fi
      ;;
    esac
    alive "version $1"
    [ "$waited" -lt "$patience" ] || give_up "version $1 is not loaded after $patience seconds"
    waited=$((waited + 1))
    sleep 1
  done
}
live() { # VERSION: the label leads to it
  waited=0
  until [ "$(get "$port" "/v1/models/$name/labels/live/metadata" | field version)" = "$1" ]; do
    alive
    [ "$waited" -lt 60 ] || give_up "its server does not make version $1 the live one"
    waited=$((waited + 1))
    sleep 1
  done
}
let_go() { # VERSION: it is unloaded, once its last request has ended
  waited=0
  while [ "$waited" -lt 60 ]; do
    case $(get "$port" "/v1/models/$name/versions/$1" | field state) in END | '') return ;; esac
    waited=$((waited + 1))
    sleep 1
  done
}

[ ! -s "$config.former" ] || must "$config could not be put back" mv -f -- "$config.former" "$config" # of a cut change
former=$(cat -- "$config")
undo() {
  before=$(printf '%s\n' "$former" | sed -n 's/.*value: *\([0-9]*\).*/\1/p' | head -n 1)
  after="; nothing is served by it" # which failing.sh says
  # shellcheck disable=SC2034
  [ -z "$before" ] || after="; version $before goes on serving"
  put "$former" "$config" && rm -f -- "$config.former"
}
began=$(docker container inspect --format '{{.RestartCount}}' "$container") ||
  fail "Docker does not answer for its server ($(cure 'did not answer'))"
written "$former" "$config.former"
eval "set -- $stages"
while [ $# -ge 3 ]; do
  written "$1" "$config"
  for version in $2; do loaded "$version"; done
  live "$3"
  shift 3
done
rm -f -- "$config.former"
undo() { :; } # it is done: what is left is to take away what nobody asks for
for version in $remove; do
  let_go "$version"
  rm -f -- "$state/models/versions/$version"
  rm -rf -- "${state:?}/models/$name/$version"
done
