# Docker puts images into the registry $at: $images are words "ID NAME". The functions of told.sh stand before it.
: "${at:?}"
: "${images:?}"
eval "set -- $images"
for pair; do
  reference=$at/${pair#* }
  docker tag "${pair%% *}" "$reference"
  told docker push "$reference"
done
