# The Debian packages of images: for each of $images "image ID" and, a line each, what dpkg says of its packages, or
# "silent" where it says nothing; "end" is the last. Nothing of an image runs but its dpkg-query.
: "${images:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
eval "set -- $images"
for image; do
  echo "image $image"
  # shellcheck disable=SC2016  # dpkg's own fields
  timeout 120 docker run --rm --network none --runtime runc --read-only --cap-drop ALL --user 65534:65534 \
    --env NVIDIA_VISIBLE_DEVICES=void --entrypoint dpkg-query "$image" \
    -W -f '${db:Status-Abbrev}${binary:Package} ${Version}\n' 2>/dev/null || echo silent
done
echo end
