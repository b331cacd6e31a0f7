# Installs the package file $deb with dpkg, but for the source list $list_file in it, which names no key: a host that goes
# down afterwards must not come back with a list that every apt-get update stumbles over. dpkg removes a list of that
# name when it installs the package again: what was there is put back.
# $lock_wait_s: seconds to wait for dpkg's lock.
: "${deb:?}"
: "${list_file:?}"
: "${lock_wait_s:?}"
kept=$(mktemp)
trap 'rm -f -- "$kept"' EXIT
cp -p -- "$list_file" "$kept" 2>/dev/null || true  # most hosts have none yet
deadline=$(($(date +%s) + lock_wait_s))
until output=$(LC_ALL=C dpkg --force-confdef --force-confold --path-exclude="$list_file" --install "$deb" 2>&1); do
  case $output in *'locked by another process'*) ;; *) echo "$output"; exit 1 ;; esac
  [ "$(date +%s)" -lt "$deadline" ] || { echo "$output"; exit 1; }
  sleep 1
done
echo "$output"
if [ -s "$kept" ]; then cp -p -- "$kept" "$list_file.hostwright-new" && mv -f -- "$list_file.hostwright-new" "$list_file"; fi
