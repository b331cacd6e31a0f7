# Which of $images ("ID NAME NAME_IN_REGISTRY") the registry $at has as Docker put them there: "ID NAME NAME@DIGEST" each.
# Docker fetches the description of what it has, and nothing else.
: "${at:?}"
: "${images:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
eval "set -- $images"
for image; do
  repository=${image##* }
  repository=${repository%:*}
  for reference in $(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "${image%% *}" 2>/dev/null); do
    case $reference in
    "$repository@sha256:"*)
      if timeout 60 docker pull -q "$reference" >/dev/null 2>&1; then
        echo "${image% *} $reference"
        break
      fi
      ;;
    esac
  done
done
