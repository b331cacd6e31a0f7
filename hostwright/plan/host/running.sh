# Prints one line for each job that runs: its directory's name, a space, the first $cap bytes of its job.json. It needs
# `alive` of alive.sh.
: "${jobs:?}"
: "${cap:?}"
for job in "$jobs"/*; do
  job=${job##*/}
  alive "$job" || continue
  printf '%s ' "$job"; head -c "$cap" "$jobs/$job/job.json" 2>/dev/null | tr -d '\n'; echo
done
:
