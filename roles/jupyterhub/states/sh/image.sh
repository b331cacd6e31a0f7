# Build the image of people's Jupyters. $requirements are pairs: a version of Python, and what pip takes for it.
: "${tag:?}"
: "${base:?}"
: "${pull?}"
: "${python:?}"
: "${files:?}"
: "${requirements:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
fail() {
  echo "the image $base: $*" >&2
  exit 1
}
if ! docker image inspect "$base" >/dev/null 2>&1; then
  [ -n "$pull" ] || fail "it is not on this host any more"
  docker pull -q "$base"
fi
# The whole version: some packages refuse the first ones of a series.
version=$(docker run --rm --network none --user 65534:65534 --env NVIDIA_VISIBLE_DEVICES=void --entrypoint python3 \
  "$base" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])') || fail "it has no python3 that runs"
inside=${version%.*}
eval "set -- $requirements"
known=''
while [ $# -ge 2 ] && [ "$1" != "$inside" ]; do
  known="$known${known:+, }$1"
  shift 2
done
[ $# -ge 2 ] || fail "it has Python $inside, and JupyterHub's part is known for $known: take another image"
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
mkdir "$folder/wheels"
printf '%s' "$2" >"$folder/requirements.txt"
export PIP_REQUIRE_VIRTUALENV=0  # whatever the host's pip.conf has
"$python" -I -m pip download --disable-pip-version-check --no-input --progress-bar off --no-cache-dir --quiet \
  --no-deps --only-binary :all: --require-hashes --python-version "$version" --implementation cp \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
  --platform manylinux_2_24_x86_64 --platform manylinux_2_12_x86_64 --platform manylinux2010_x86_64 \
  --platform manylinux_2_5_x86_64 --platform manylinux1_x86_64 \
  --dest "$folder/wheels" -r "$folder/requirements.txt"
eval "set -- $files"
while [ $# -ge 2 ]; do
  printf '%s' "$2" >"$folder/$1"
  shift 2
done
docker build --quiet --force-rm --network none --tag "$tag" "$folder" >/dev/null ||
  fail "JupyterHub's part could not be added: it needs Jupyter (jupyterlab or notebook) beside python3"
