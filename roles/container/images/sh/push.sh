# Docker puts images into the registry $at: $images are words "ID NAME NAME_IN_REGISTRY". The functions of failing.sh stand
# before it.
: "${at:?}"
: "${images:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
eval "set -- $images"
for image; do
  reference=${image##* }
  docker tag "${image%% *}" "$reference"
  told docker push "$reference"
done
