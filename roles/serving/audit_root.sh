# Of each model: the versions that its server answers for, the live one, and the checksum of each version's files as
# they are now. A stopped daemon is not queried: a query would start it.
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
get() { # PORT PATH
  # shellcheck disable=SC2016  # bash's own variables
  bounded bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$2" >&3
    head -c 262144 <&3' get "$1" "$2" 2>/dev/null | tr -d '\r' | sed '1,/^$/d'
}
for list in /var/lib/hostwright/workspaces/*/models/versions/*; do
  [ -f "$list" ] || continue
  models=${list%/versions/*}
  name=${models%/models}
  name=${name##*/}
  version=${list##*/}
  now=$(cd "$models/$name/$version" 2>/dev/null && bounded sha256sum --quiet -c "$list" >/dev/null 2>&1 && sha256sum <"$list") || now=
  say "$name version $version" "${now:+sha256:${now%% *}}"
done
line_of /run/docker.pid
if [ -n "$line" ] && [ -d "/proc/$line" ]; then
  bounded docker ps --filter label=hostwright.kind=serving \
    --format '{{.Label "hostwright.workspace"}} {{.Label "hostwright.port"}}' | while read -r name port; do
    [ -n "$port" ] || continue
    versions=$(get "$port" "/v1/models/$name" | awk '
      /"version":/ { gsub(/[^0-9]/, ""); version = $0 }
      /"state": *"AVAILABLE"/ { print version }' | sort -n | tr '\n' ',')
    say "$name versions" "${versions%,}"
    say "$name live" "$(get "$port" "/v1/models/$name/labels/live/metadata" | grep -o '"version": *"[0-9]*"' | head -n 1 | tr -dc '0-9')"
  done
fi
