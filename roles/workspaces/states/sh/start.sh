# Start the container of a workspace and wait until it answers on its port; else stop it again and say what it printed.
: "${name:?}"
: "${kind:?}"
: "${port:?}"
: "${path:?}"
: "${patience:?}"
: "${models?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
container=workspace-$name
answers() {
  # shellcheck disable=SC2016  # bash's own variables
  timeout 10 bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$2" || exit 1
    case $1 in
    ssh) expected="SSH-2.0*" ;;
    *)
      expected="HTTP/1.? 200*"
      [ "$1" != serving ] || expected="HTTP/1.? *" # also one without a model has begun to answer
      printf "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" "$3" >&3
      ;;
    esac
    IFS= read -r -t 8 line <&3
    # shellcheck disable=SC2053
    [[ $line == $expected ]]' answers "$kind" "$port" "$path" 2>/dev/null
}
refuse() {
  echo "the last that workspace $name printed:"
  printed=$(docker logs --tail 15 "$container" 2>&1) || :
  printf '%s\n' "$printed" | sed 's/^/| /'
  docker stop --time 5 "$container" >/dev/null 2>&1 || :
  last=$(printf '%s\n' "$printed" | grep -v '^[[:space:]]*$' | tail -n 1 | tail -c 300)
  files=files
  [ "$kind" != jupyter ] || files="files (also the person's own packages in ~/.local)"
  fail "$*: ${last:-it printed nothing} (its image, command or $files are wrong: the lines before this one say more)"
}
if [ -n "$models" ] && [ -s "$models/models.config.former" ]; then # a crash cut a change of its models off
  docker stop --time 5 "$container" >/dev/null 2>&1 || :
  must "$models/models.config could not be put back" mv -f -- "$models/models.config.former" "$models/models.config"
fi
must "Docker does not start its container" docker start "$container"
began=$(docker container inspect --format '{{.RestartCount}}' "$container") ||
  fail "Docker stopped answering while it was started ($(cure 'did not answer'))"
waited=0
until answers; do
  now=$(docker container inspect --format '{{.State.Status}} {{.RestartCount}} {{.State.ExitCode}}' "$container") ||
    fail "Docker stopped answering while it was started ($(cure 'did not answer'))"
  case $now in
  "running $began "*) ;;
  *' 0') refuse "it ended soon after its start" ;; # or was started again already, and its status is gone
  *) refuse "it ended soon after its start (status ${now##* })" ;;
  esac
  [ "$waited" -lt "$patience" ] || refuse "it does not answer on port $port after $patience seconds"
  waited=$((waited + 1))
  sleep 1
done
