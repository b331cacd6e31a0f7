# Installs the package file $deb with dpkg, and keeps the source list $list_file as it is, if it is there.
# $lock_wait_s: seconds to wait for dpkg's lock.
: "${deb:?}"
: "${list_file:?}"
: "${lock_wait_s:?}"
kept=$(mktemp)
trap 'rm -f -- "$kept"' EXIT
cp -p -- "$list_file" "$kept" 2>/dev/null || true
deadline=$(($(date +%s) + lock_wait_s))
until output=$(LC_ALL=C dpkg --force-confdef --force-confold --install "$deb" 2>&1); do
  case $output in *'locked by another process'*) ;; *) echo "$output"; exit 1 ;; esac
  [ "$(date +%s)" -lt "$deadline" ] || { echo "$output"; exit 1; }
  sleep 1
done
echo "$output"
if [ -s "$kept" ]; then cp -p -- "$kept" "$list_file"; fi
