# Stops the units of people's own systemd whose processes hold the GPU, by that systemd: one with Restart= would come back
# in the middle. Each is kept in $units, as "person/NAME/UNIT", for `returned.sh`. Needs `personal`.
: "${units:?}"
for p in $(holders); do
  service "$p"
  # shellcheck disable=SC2154  # of holders.sh
  case $person in - | */- | *[!A-Za-z0-9:_.@/\\-]*) ;; *) echo "$person" ;; esac
done | sort -u | while IFS=/ read -r name unit; do
  echo "person/$name/$unit" >>"$units"
  personal "$name" stop "$unit" || true  # those that do not end are ended with the other holders
done
