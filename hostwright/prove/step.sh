# Runs the program of one proof in a directory of its own, and prints what it printed, then lines that begin with
# $nonce: "status N", "took MILLISECONDS", "stopped WHY", "hottest DEVICE DEGREES", "build" where it could not be built,
# and "said LINE" for the last lines of its standard error. It ends with 0 whatever the program did.
#
# All that the program starts bears $mark in its environment; what is left of it is killed at the end, also what it put
# into a session of its own. $watch prints a line a card: device, temperature, limit, with tabs between. Where it prints
# none five times in a row, nobody knows how hot they are: then the proof stops as well.
: "${nonce:?}"
: "${mark:?}"
: "${file:?}"
: "${source?}"
: "${arguments:?}"
: "${build?}"
: "${command:?}"
: "${environment?}"
: "${watch?}"
: "${limit_s:?}"
: "${build_s:?}"
: "${out_bytes:?}"
: "${err_bytes:?}"
: "${end_s:?}"
umask 077
dir=$(mktemp -d "$TMPDIR/proof.XXXXXX")
work=$dir/work
stopped=

# shellcheck disable=SC2317,SC2329  # called by the trap
clean() {
  end_marked
  cd / && rm -rf -- "$dir"
}
trap clean EXIT
trap 'exit 143' TERM INT HUP

# The processes that bear the mark; a process that ends meanwhile is none.
marked() {
  { grep -slzxF -- "HOSTWRIGHT_PROOF=$mark" /proc/[0-9]*/environ || :; } | tr -dc '0-9\n'
}
end_marked() {
  signal=TERM
  for pause in $(seq "$end_s") 1 1; do
    # shellcheck disable=SC2046  # numbers
    set -- $(marked)
    [ $# -gt 0 ] || return 0
    kill -s "$signal" -- "$@" 2>/dev/null || :
    [ "$pause" -lt "$end_s" ] || signal=KILL
    sleep 0.2
    # shellcheck disable=SC2046
    set -- $(marked)
    [ $# -gt 0 ] || return 0
    sleep 0.8
  done
}

uptime_ms() { read -r up _ </proc/uptime; echo "${up%.*}${up#*.}0"; }

# $script in the program's directory and environment, without standard input.
# shellcheck disable=SC2120  # the words are of $environment
inside() {
  eval "set -- $environment"
  cd "$work" && exec env -u LD_PRELOAD HOME="$work" TMPDIR="$work" "HOSTWRIGHT_PROOF=$mark" "$@" \
    setsid timeout -k "$end_s" "$seconds" sh -c "$script" </dev/null
}

# One look at the cards: what is too hot is printed; the hottest of each card is kept in $dir/hottest.
look() {
  timeout -k 1 10 sh "$dir/watch" </dev/null 2>/dev/null | head -c 65536 >"$dir/cards" || :
  awk -F '\t' -v kept="$dir/hottest" '
    BEGIN { while ((getline line < kept) > 0) { split(line, at, "\t"); most[at[1]] = at[2] } close(kept) }
    NF == 3 && $1 ~ /^[A-Za-z0-9:._-]+$/ && $2 ~ /^[0-9][0-9]?[0-9]?$/ && $3 ~ /^[0-9][0-9]?[0-9]?$/ {
      read = 1
      if (!($1 in most) || $2 + 0 > most[$1] + 0) most[$1] = $2
      if ($2 + 0 >= $3 + 0) printf "%s is at %s °C, and a proof stops at %s °C\n", $1, $2, $3
    }
    END { printf "" >kept; for (card in most) printf "%s\t%s\n", card, most[card] >kept; exit !read }
  ' "$dir/cards" >"$dir/hot" || return 1
}
watch_cards() {
  if look; then
    missed=0
    IFS= read -r stopped <"$dir/hot" || :
  else
    missed=$((missed + 1))
    [ "$missed" -lt 5 ] || stopped='the temperature of the cards could not be read five times in a row'
  fi
}

# Until the program has ended, or has to be stopped.
follow() {
  round=0 missed=0
  until [ -s "$dir/status" ]; do
    [ -z "$watch" ] || [ $((round % 10)) -ne 0 ] || watch_cards
    if [ -n "$stopped" ]; then end_marked; return; fi
    round=$((round + 1)); sleep 0.2
  done
}

run() {
  script=$command seconds=$limit_s
  mkfifo "$dir/err.pipe"
  tail -c "$err_bytes" <"$dir/err.pipe" >"$dir/err" &
  teller=$!
  begin=$(uptime_ms)
  {
    status=0
    # shellcheck disable=SC2119
    (inside) 2>"$dir/err.pipe" || status=$?
    echo "$status" >"$dir/status.new" && mv "$dir/status.new" "$dir/status"
  } | head -c "$out_bytes" >"$dir/out" &
  reader=$!
  follow
  end_marked
  wait "$reader" "$teller" || :
  took=$(( $(uptime_ms) - begin ))
  cat "$dir/out"
  printf '\n%s status %s\n%s took %s\n' "$nonce" "$(cat "$dir/status" 2>/dev/null || echo 137)" "$nonce" "$took"
  [ -z "$stopped" ] || printf '%s stopped %s\n' "$nonce" "$stopped"
  sed "s/^/$nonce hottest /; y/\t/ /" "$dir/hottest"
}

built() {
  [ -n "$build" ] || return 0
  script=$build seconds=$build_s
  # shellcheck disable=SC2119
  { (inside) 2>&1 || : >"$dir/unbuilt"; } | head -c "$out_bytes" >"$dir/err.whole"
  [ -e "$dir/unbuilt" ] || return 0
  grep -i -m 5 'error' "$dir/err.whole" >"$dir/err" || tail -n 5 "$dir/err.whole" >"$dir/err"
  printf '%s build\n' "$nonce"
  return 1
}

mkdir "$work"
: >"$dir/hottest"; : >"$dir/err"
printf '%s' "$source" >"$dir/$file"
printf '%s' "$arguments" >"$dir/arguments.json"
printf '%s\n' "$watch" >"$dir/watch"
# The words of both commands name these.
proof_source=$dir/$file proof_program=$dir/program proof_arguments=$dir/arguments.json
export proof_source proof_program proof_arguments
if built; then run; fi
tail -c "$err_bytes" "$dir/err" | tail -n 15 | sed "s|$dir/||g" | cut -c 1-400 | sed "s/^/$nonce said /"
