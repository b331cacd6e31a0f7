# Docker fetches images from the registry $at by their digests: $images are words "ID NAME NAME@DIGEST". Each must be the
# image with that ID; only then its name leads to it. The functions of failing.sh stand before it.
: "${at:?}"
: "${images:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
eval "set -- $images"
for image; do
  id=${image%% *} reference=${image##* }
  name=${image#* } name=${name% *}
  told docker pull -q "$reference"
  now=$(docker image inspect --format '{{.Id}}' "$reference")
  if [ "$now" != "$id" ]; then
    echo "hostwright: error: the registry $at sent the image $now as $name, and $id was pushed" >&2
    exit 1
  fi
  docker tag "$id" "$name"
done
