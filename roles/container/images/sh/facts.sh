# What Docker has, a line each, with "end" as the last: "docker absent" or "docker silent", "store NAME" where images have
# other IDs than elsewhere, "free KIB" where its images lie, "cut SHA256" of each archive whose load was killed,
# "image JSON", "container JSON".
: "${image:?}"
: "${container:?}"
: "${loads:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
command -v docker >/dev/null 2>&1 || { echo "docker absent"; echo end; exit 0; }
root=$(timeout 20 docker info --format '{{.DockerRootDir}} {{.DriverStatus}}' 2>/dev/null) || root=
case $root in
  /*io.containerd.snapshotter*) echo "store containerd" ;;
  /*) ;;
  *) echo "docker silent"; echo end; exit 0 ;;
esac
df -Pk -- "${root%% *}" 2>/dev/null | awk 'NR == 2 { print "free", $4 }'
for before in "$loads"/*.before; do
  if [ -e "$before" ]; then echo "cut $(basename -- "$before" .before)"; fi
done
ids=$(timeout 30 docker image ls -q --no-trunc | sort -u) || echo "docker silent"
# what has just gone is no longer known: status 1
# shellcheck disable=SC2086
[ -z "$ids" ] || timeout 60 docker image inspect --format "$image" $ids || [ $? -eq 1 ] || echo "docker silent"
ids=$(timeout 30 docker ps -aq --no-trunc) || echo "docker silent"
# shellcheck disable=SC2086
[ -z "$ids" ] || timeout 60 docker inspect --type container --format "$container" $ids || [ $? -eq 1 ] ||
  echo "docker silent"
echo end
