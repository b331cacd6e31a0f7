# Build an image on the host from these files (name, text, …). It needs `name_servers_lost` of nameservers.sh.
: "${tag:?}"
: "${base:?}"
: "${pull?}"
: "${files:?}"
: "${error:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
if ! docker image inspect "$base" >/dev/null 2>&1; then
  [ -n "$pull" ] || {
    echo "the image $base is not on this host any more" >&2
    exit 1
  }
  docker pull -q "$base"
fi
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
eval "set -- $files"
while [ $# -ge 2 ]; do
  printf '%s' "$2" >"$folder/$1"
  shift 2
done
# Without the layers of an earlier build: another date is a comment to Docker, and would bring the same old packages.
docker build --quiet --no-cache --force-rm --network host --label hostwright.workspaces=image --tag "$tag" "$folder" \
  >/dev/null || {
  why=$(name_servers_lost)
  [ -z "$why" ] || printf '\n%s\n' \
    "${error}image $tag could not be built, as this host's containers have no usable name server: $why"
  exit 1
}
