# Runs the program $1 with its arguments $2 in a container of $image, as its TensorFlow's users would: with all cards
# that the host has, without network, and with limits. The image must be on the host; none is pulled.
#
# The container ends with the proof. Here it is removed, by the label that no other container bears. Where this shell is
# killed, the container's programs are: they bear the proof's mark, too, and Docker removes what they ran in. Where
# nobody is left to do that, it ends at $limit_s.
: "${image:?}"
: "${label:?}"
: "${limit_s:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
set -u
not_run() { printf '{"not run": "%s"}\n{"end": true}\n' "$1"; exit 0; }

# Without the mark, and in a session of its own: a proof that is ended must not end this.
# shellcheck disable=SC2016,SC2317,SC2329  # the inner shell's own; called by the trap
remove() {
  env -u HOSTWRIGHT_PROOF setsid --wait sh -c '
    for id in $(timeout 20 docker ps --all --quiet --no-trunc --filter "label=$0"); do
      timeout 60 docker rm --force "$id"
    done' "$label" >/dev/null 2>&1 </dev/null || :
}
trap remove EXIT
trap 'exit 143' TERM INT HUP
remove

if ! id=$(timeout 60 docker image inspect --format '{{.Id}}' "$image" 2>"$TMPDIR/why"); then
  grep -qi 'no such image' "$TMPDIR/why" || not_run 'Docker does not answer'
  not_run "this host has no image $image, and a proof pulls none: bring it with images.push"
fi
gpus=
if nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then gpus=all; fi
# Nine tenths of what is free: the container must run out of memory before the host does.
memory=$(awk '/^MemAvailable:/ { printf "%.0fk", $2 * 0.9 }' /proc/meminfo)
container=$(timeout 120 docker create --rm --label "$label" ${gpus:+--gpus "$gpus"} \
  --env "NVIDIA_VISIBLE_DEVICES=${gpus:-void}" --env NVIDIA_DRIVER_CAPABILITIES=compute,utility --env HOSTWRIGHT_PROOF \
  --network none --cap-drop ALL --security-opt no-new-privileges --user 0:0 --pids-limit 4096 --shm-size 1g \
  ${memory:+--memory "$memory" --memory-swap "$memory"} --log-driver none --workdir /tmp --entrypoint timeout \
  "$id" -k 5 "$limit_s" python3 "/tmp/${1##*/}" "/tmp/${2##*/}") || exit 1
{ docker cp "$1" "$container:/tmp/${1##*/}" && docker cp "$2" "$container:/tmp/${2##*/}"; } >/dev/null || exit 1
docker start --attach "$container" </dev/null &
wait $!
