# Prints one line for each job that runs: its directory's name, a space, the first $cap bytes of its job.json. It needs
# `alive` of alive.sh.
: "${jobs:?}"
: "${cap:?}"
cd "$jobs" 2>/dev/null || exit 0
for job in *; do
  alive "$job" || continue
  printf '%s ' "$job"; head -c "$cap" "$job/job.json" 2>/dev/null | tr -d '\n'; echo
done
exit 0
