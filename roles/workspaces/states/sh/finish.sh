# What a change of a workspace leaves for its end: the definition is written, and the container that was replaced goes.
: "${name:?}"
: "${state:?}"
: "${definition:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
define() {
  (umask 077 && printf '%s' "$definition" | cat >"$state/.definition.json.new") &&
    mv -f -- "$state/.definition.json.new" "$state/definition.json"
}
must "$state/definition.json could not be written" define
docker rm -f "workspace-$name.old" "workspace-$name.new" >/dev/null 2>&1 || :
