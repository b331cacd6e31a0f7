# Bring a model server to other versions in stages (configuration, versions to wait for, live version), without a lost
# request: nothing is let go before what follows it answers. If a version does not load, the configuration from before
# is put back, so that the server goes on with it also when it starts again. Versions to $remove go at the end.
: "${name:?}"
: "${port:?}"
: "${state:?}"
: "${stages:?}"
: "${remove?}"
: "${patience:?}"
config=$state/models/models.config
container=workspace-$name
former=$(cat -- "$config")
began=$(docker container inspect --format '{{.RestartCount}}' "$container")
get() { # PATH: the body of the answer
  # shellcheck disable=SC2016  # bash's own variables
  timeout 10 bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$2" >&3
    cat <&3' get "$port" "$1" 2>/dev/null | tr -d '\r' | sed '1,/^$/d'
}
field() { sed -n "s/.*\"$1\": *\"\(.*\)\".*/\1/p" | head -n 1 | sed 's/\\\(["\\/]\)/\1/g'; }
put() {
  printf '%s\n' "$1" >"$state/models/.models.config.new"
  chmod 644 -- "$state/models/.models.config.new"
  mv -f -- "$state/models/.models.config.new" "$config"
}
fail() {
  put "$former"
  before=$(printf '%s\n' "$former" | sed -n 's/.*value: *\([0-9]*\).*/\1/p' | head -n 1)
  after="nothing is served by it"
  [ -z "$before" ] || after="version $before goes on serving"
  echo "the last that its server printed:" >&2
  docker logs --tail 15 "$container" >&2 || :
  echo "model $name: $*; $after" >&2
  exit 1
}
alive() {
  now=$(docker container inspect --format '{{.State.Status}} {{.RestartCount}}' "$container")
  [ "$now" = "running $began" ] || fail "its server ended while it loaded ${1:-a version} ($now)"
}
loaded() { # VERSION
  waited=0
  while :; do
    answer=$(get "/v1/models/$name/versions/$1") || answer=
    case $(printf '%s' "$answer" | field state) in
    AVAILABLE) return ;;
    END) # for the first seconds it may be the end of an earlier life
      code=$(printf '%s' "$answer" | field error_code)
      if [ "$waited" -ge 5 ] && [ "$code" != OK ]; then
        fail "version $1 does not load: $(printf '%s' "$answer" | field error_message) ($code)"
      fi
      ;;
    esac
    alive "version $1"
    [ "$waited" -lt "$patience" ] || fail "version $1 is not loaded after $patience seconds"
    waited=$((waited + 1))
    sleep 1
  done
}
live() { # VERSION: the label leads to it
  waited=0
  until [ "$(get "/v1/models/$name/labels/live/metadata" | field version)" = "$1" ]; do
    alive
    [ "$waited" -lt 60 ] || fail "its server does not make version $1 the live one"
    waited=$((waited + 1))
    sleep 1
  done
}
let_go() { # VERSION: it is unloaded, once its last request has ended
  waited=0
  while [ "$waited" -lt 60 ]; do
    case $(get "/v1/models/$name/versions/$1" | field state) in END | '') return ;; esac
    waited=$((waited + 1))
    sleep 1
  done
}
eval "set -- $stages"
while [ $# -ge 3 ]; do
  put "$1"
  for version in $2; do loaded "$version"; done
  live "$3"
  shift 3
done
for version in $remove; do
  let_go "$version"
  rm -f -- "$state/models/versions/$version"
  rm -rf -- "${state:?}/models/$name/$version"
done
