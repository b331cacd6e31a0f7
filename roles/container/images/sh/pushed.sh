# Which of $images ("ID NAME") the registry $at has as Docker put them there: "ID NAME NAME@DIGEST" each. Docker fetches
# the description of what it has, and nothing else.
: "${at:?}"
: "${images:?}"
eval "set -- $images"
for pair; do
  repository=$at/${pair#* }
  repository=${repository%:*}
  for reference in $(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "${pair%% *}" 2>/dev/null); do
    case $reference in
    "$repository@sha256:"*)
      if timeout 60 docker pull -q "$reference" >/dev/null 2>&1; then
        echo "$pair $reference"
        break
      fi
      ;;
    esac
  done
done
