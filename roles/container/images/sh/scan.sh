# The table of $scanner about an image: of the archive $archive, or where that is empty, of what Docker saves of $image.
# From an archive, because by its name a scanner may take another image, from a registry; in an empty directory, because
# there may be a configuration in another that passes over findings. $room: KiB that it takes.
: "${scanner:?}"
: "${image:?}"
: "${archive?}"
: "${room:?}"
set -eu
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
PATH=$PATH:/usr/local/bin:/snap/bin
folder=${TMPDIR:-/var/tmp}
free=$(df -Pk -- "$folder" | awk 'NR == 2 { print $4 }')
if [ "$free" -lt "$room" ]; then
  echo "it takes $((room / 1024)) MiB in $folder, where $((free / 1024)) MiB are free" >&2
  exit 1
fi
work=$(mktemp -d -p "$folder")
trap 'rm -rf -- "$work"' EXIT
mkdir "$work/empty"
cd "$work/empty"
if [ -z "$archive" ]; then
  archive=$work/image.tar
  docker save -o "$archive" "$image"
fi
export TMPDIR="$work" # what it unpacks goes with it, also where it is killed
case $scanner in
trivy)
  # options under names that changed: what a version does not know, it passes over
  TRIVY_SCANNERS=vuln TRIVY_SECURITY_CHECKS=vuln TRIVY_TIMEOUT=30m \
    timeout 2200 trivy image --quiet --format table --input "$archive"
  ;;
grype) GRYPE_CHECK_FOR_APP_UPDATE=false timeout 2200 grype --quiet -o table "docker-archive:$archive" ;;
esac
