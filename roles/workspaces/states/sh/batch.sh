# shellcheck shell=sh
# Run a batch workspace to its end, once: wait for its GPUs, start its container, and keep its log and how it ended
# (batch.log and batch.json among the person's files of it). Written by Hostwright; hostwright-batch@NAME.service runs it.
# Of runs that want the same GPU, the one whose container was made first goes first, also after a reboot: nobody who wants
# one of two cards passes a run that waits for both.
# "NAME why" prints what one in the queue waits for, "NAME refused" why Docker did not start it where Docker keeps no reason.
set -eu
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
name=$1
container=workspace-$name
silence='Docker does not answer'
# a file for each GPU, with the run that has it; NAME.turn, locked by a run to its end; NAME.waits: what a run waits for; NAME.refused
locks=/run/hostwright-batch
most=30 # our choice: a start that fails so often, in a minute, while Docker answers, and says no error, will not come

if [ "${2:-}" = why ]; then
  { read -r what rest <"$locks/$name.waits"; } 2>/dev/null || exit 0
  case $what in lock | turn) ;; *) exec echo "$what $rest" ;; esac
  holder=$(cat -- "$locks/${rest##* }" 2>/dev/null || :)
  [ "$what" = lock ] || [ "$holder" = "${rest% *}" ] ||
    exec echo "batch run ${rest% *}, which wants ${rest##* } too, was declared before it"
  exec echo "batch run ${holder:-of another workspace} has ${rest##* }"
fi

[ "${2:-}" != refused ] || exec cat -- "$locks/$name.refused"

waits() { # WHAT, for whoever asks why
  mkdir -p "$locks"
  printf '%s\n' "$1" >"$locks/$name.waits.new"
  mv -f -- "$locks/$name.waits.new" "$locks/$name.waits"
}
field() { # FORMAT: waits until Docker answers; "gone" where it has no such container
  silent=
  until said=$(timeout 60 docker container inspect --format "$1" "$container" 2>/dev/null); do
    case $(timeout 60 docker container inspect --format "$1" "$container" 2>&1 >/dev/null) in
    *'No such container'* | *'No such object'*) said=gone && break ;;
    esac
    [ -n "$silent" ] || waits "$silence"
    silent=yes
    sleep 2
  done
  [ -z "$silent" ] || rm -f -- "$locks/$name.waits"
  printf '%s\n' "$said"
}
label() { field "{{index .Config.Labels \"hostwright.$1\"}}"; }
user=$(field '{{.Config.User}}')
directory=$(field '{{range .Mounts}}{{if eq .Destination "/workspace"}}{{.Source}}{{end}}{{end}}')
case $user:$directory in [0-9]*:[0-9]*:/*) ;; *)
  echo "there is no container $container" >&2
  exit 1
  ;;
esac

as_user() { setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups -- "$@"; } # its files are the person's own
soon() { timeout 30 setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups -- "$@"; } # whatever they put there
# shellcheck disable=SC2016  # the inner shell's
keep() { soon sh -c 'umask 077 && rm -f -- "$1.new" && cat >"$1.new" && mv -f -- "$1.new" "$1"' keep "$directory/$1"; }
told() { # STATE: whether batch.json says so of this very run
  case $(soon cat -- "$directory/batch.json" 2>/dev/null) in
  *"\"definition\":\"$definition\",\"state\":\"$1\""*) ;;
  *) return 1 ;;
  esac
}
definition=$(label definition)
tell() { # STATE STATUS [WHAT_IT_WAITS_FOR [ERROR]], with what Docker knows
  error='{{json .State.Error}}'
  [ -z "${4:-}" ] || error="\"$4\""
  known=$(field "{\"workspace\":\"$name\",\"definition\":\"$definition\",\"state\":\"$1\",\"status\":$2,\
\"waits_for\":\"${3:-}\",\"error\":$error,\
\"out_of_memory\":{{.State.OOMKilled}},\"started\":{{json .State.StartedAt}},\"ended\":{{json .State.FinishedAt}}}")
  [ "$known" != gone ] || return 0
  kept=$(printf '%s\n' "$known" | keep batch.json 2>&1) || {
    mkdir -p "$locks" && printf '%s\n' "its batch.json cannot be written: ${kept##*: }" | tee "$locks/$name.refused" >&2
    return 1
  }
}
gpus=$(label gpus)
# Locks are taken in the order of their names, so that no two runs wait for each other. An old MIG device has slashes.
lock_names=$(printf '%s' "$gpus" | tr ',/' '\n_' | sort)

queued() { # NAME: whether that run waits or works, or a boot is yet to begin it
  state=$(systemctl show -p ActiveState -p Job -- "hostwright-batch@$1.service") || return 0 # nobody passes it by mistake
  printf '%s\n' "$state" | grep -qE '^(ActiveState=(active|activating|deactivating)|Job=[1-9].*)$'
}
format='{{.Created}} {{.Name}} {{index .Config.Labels "hostwright.gpus"}}'
earlier() { # "NAME GPU" of the first run before this one that wants a GPU of it; nothing where its turn has come
  [ -n "$gpus" ] || return 0
  # One that has just gone is no longer known: the inspection fails, and all are asked again.
  # shellcheck disable=SC2086  # several words
  until ids=$(timeout 60 docker container ls -aq --filter label=hostwright.kind=batch --filter status=created 2>/dev/null) &&
    rows=$(timeout 60 docker container inspect --format "$format" $ids 2>/dev/null); do
    [ "$(field '{{.State.Status}}')" != gone ] || return 0
    sleep 1
  done
  printf '%s\n' "$rows" | sed 's/Z / /' | LC_ALL=C sort | while read -r _ other theirs; do
    [ "$other" != "/$container" ] || break # the others were made later
    other=${other#/workspace-}
    case $other in *[!a-z0-9-]*) continue ;; esac # beside one that it is to replace
    for gpu in $(printf '%s' "$gpus" | tr ',' ' '); do
      case ,$theirs, in *",$gpu,"*) ;; *) continue ;; esac
      ! queued "$other" || exec echo "$other $gpu"
    done
  done
}

uses() { # who computes on its GPUs, in a line; nothing where nobody does
  # 14: the infoROM of a card is damaged, which is said after all rows
  apps=$(timeout -k 5 30 nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name --format=csv,noheader) || [ $? -eq 14 ] || {
    echo "nvidia-smi does not answer"
    return
  }
  printf '%s\n' "$apps" | while IFS=, read -r uuid pid program; do
    case ,$gpus, in *",$uuid,"*) ;; *) continue ;; esac
    pid=$(printf '%s' "$pid" | tr -cd 0-9)
    program=$(printf '%s' "${program##*/}" | tr -cd 'A-Za-z0-9._-' | head -c 40)
    id=$(sed -n 's/.*\([0-9a-f]\{64\}\).*/\1/p' "/proc/$pid/cgroup" 2>/dev/null | head -n 1)
    whose=${id:+$(docker container inspect --format '{{index .Config.Labels "hostwright.workspace"}}' "$id" 2>/dev/null || :)}
    echo "${program:-a program} ($pid)${whose:+ of workspace $whose} uses $uuid"
    break
  done
}

since() { date -r "$directory/batch.log" +%s.%N 2>/dev/null || echo 0; } # when something was last added to the log
# shellcheck disable=SC2016
add() { "$1" sh -c 'umask 077 && exec cat >>"$1"' log "$directory/batch.log"; }
record() { # what it prints, also after a restart of Docker that it outlives (live-restore)
  while :; do
    docker logs -f --since "$since" "$container" 2>&1 | add as_user
    since=$(date +%s.%N)
    [ "$(field '{{.State.Running}}')" = true ] || return 0
  done
}

follow() {
  if told running; then # the host or this program was ended meanwhile: what is kept stays, what followed is added
    since=$(since)
  else
    since=0
    soon rm -f -- "$directory/batch.log"
    tell running null || : # it runs: its end is awaited all the same
  fi
  record &
  log=$!
  while [ "$(field '{{.State.Running}}')" = true ]; do
    docker wait "$container" >/dev/null 2>&1 || sleep 2 # Docker itself may be restarted meanwhile
  done
  # The next in the queue does not wait for whoever put something else in the log's place.
  timeout 60 tail -s 0.2 -f --pid "$log" /dev/null || :
  # A Docker that has just started may call a container ended that it has not yet found: what came since then.
  kill -0 "$log" 2>/dev/null || timeout 60 docker logs --since "$(since)" "$container" 2>&1 | add soon || :
  tell ended "$(field '{{.State.ExitCode}}')"
}

start() { # while Docker calls it created it has never run, and one that Docker refused has its reason, or gets one here
  tries=0 reason=
  until said=$(docker start "$container" 2>&1 >/dev/null); do
    [ "$(field '{{.State.Status}}')" = created ] && [ -z "$(field '{{.State.Error}}')" ] || break
    tries=$((tries + 1))
    if [ "$tries" -ge "$most" ]; then # text of Docker, which becomes a part of JSON in a template
      said=$(printf '%s' "${said:-it says nothing}" | tr '\n' ' ' | tr -cd "A-Za-z0-9 .,:;/@_=()'-" | head -c 200)
      reason="Docker does not start it: $said"
      break
    fi
    waits "$silence"
    sleep 2
  done
  [ -z "$said" ] || printf '%s\n' "$said" >&2
  rm -f -- "$locks/$name.waits"
  [ -z "$reason" ] || printf '%s\n' "$reason" >"$locks/$name.refused"
  case $(field '{{.State.Status}}') in created | gone) return 1 ;; esac
}

case ${2:-}:$(field '{{.State.Status}}') in
*:gone) exit 1 ;;
:created) # in the queue of each of its GPUs, one after the other
  tell queued null
  mkdir -p "$locks"
  set -- "$0" "$name" run
  for gpu in $(printf '%s' "$lock_names" | sort -r); do set -- "$0" "$name" lock "$gpu" "$@"; done
  exec flock "$locks/$name.turn" "$0" "$name" turn "$@"
  ;;
turn:created)
  shift 2
  while before=$(earlier) && [ -n "$before" ]; do
    tell queued null "${before##* }"
    waits "turn $before"
    flock -s "$locks/${before% *}.turn" true # until it has ended, or was taken out
    sleep 1                                  # a boot that is yet to begin it
  done
  exec "$@"
  ;;
lock:created)
  tell queued null "$3"
  waits "lock $3"
  gpu=$3
  shift 3
  exec flock "$locks/$gpu" "$@"
  ;;
run:created)
  for gpu in $lock_names; do printf '%s' "$name" >"$locks/$gpu"; done
  while [ "$(label when_idle)" = true ] && reason=$(uses) && [ -n "$reason" ]; do
    tell queued null "$reason"
    waits "$reason"
    sleep 10
  done
  rm -f -- "$locks/$name.waits" "$locks/$name.refused"
  start || {
    tell 'not started' null '' "$reason"
    exit 1
  }
  follow
  ;;
*) told ended || follow ;; # it was started before, and is not started again
esac
