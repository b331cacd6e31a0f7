# Docker puts images into the registry $at: $images are words "ID NAME NAME_IN_REGISTRY". The functions of told.sh stand
# before it.
: "${at:?}"
: "${images:?}"
eval "set -- $images"
for image; do
  reference=${image##* }
  docker tag "${image%% *}" "$reference"
  told docker push "$reference"
done
