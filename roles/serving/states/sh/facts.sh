# What the host has of models, a line each, with "end" as the last: "config NAME TEXT" of the server's configuration,
# "version NAME NUMBER CHECKSUM" of files that are there, "closed NAME MODE PATH" of the first that its server may not read, "cut NAME" where a change of its configuration was cut off, "docker absent" or "docker silent"; of servers that run
# "status NAME JSON" and "live NAME NUMBER".
: "${state:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
get() { # PORT PATH: the body of the answer on one line
  # shellcheck disable=SC2016  # bash's own variables
  timeout 10 bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$2" >&3
    head -c 262144 <&3' get "$1" "$2" 2>/dev/null | tr -d '\r' | sed '1,/^$/d' | tr '\n' ' '
}
for folder in "$state"/*/models; do
  [ -d "$folder" ] || continue
  name=${folder%/models}
  name=${name##*/}
  printf 'config %s ' "$name"
  head -c 65536 -- "$folder/models.config" 2>/dev/null | tr '\n' ' '
  echo
  [ ! -s "$folder/models.config.former" ] || echo "cut $name"
  for path in "$folder" "$folder/$name" "$folder/models.config"; do
    depth=
    [ "$path" != "$folder" ] || depth="-maxdepth 0"
    # shellcheck disable=SC2086  # two words, or none
    [ ! -e "$path" ] || find "$path" $depth \( -type d ! -perm -005 -o -type f ! -perm -004 \) \
      -printf "closed $name %m %p\n" -quit
  done
  for list in "$folder"/versions/*; do
    if [ -f "$list" ] && [ -d "$folder/$name/${list##*/}" ]; then
      sum=$(sha256sum <"$list")
      echo "version $name ${list##*/} ${sum%% *}"
    fi
  done
done
command -v docker >/dev/null 2>&1 || { echo "docker absent"; echo end; exit 0; }
rows=$(timeout 20 docker ps --filter label=hostwright.kind=serving \
  --format '{{.Label "hostwright.workspace"}} {{.Label "hostwright.port"}}') || { echo "docker silent"; echo end; exit 0; }
printf '%s\n' "$rows" | while read -r name port; do
  if [ -n "$port" ]; then
    echo "status $name $(get "$port" "/v1/models/$name")"
    live=$(get "$port" "/v1/models/$name/labels/live/metadata" | grep -o '"version": *"[0-9]*"' | head -n 1 | tr -dc '0-9')
    [ -z "$live" ] || echo "live $name $live"
  fi
done
echo end
