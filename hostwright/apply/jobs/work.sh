# work NAME: makes a directory NAME for root alone in which programs may be run, and prints its path; exits with 1 where
# none can be. It is made in the first of $work_dirs that has $enough_kib free, else in the one with the most. Whether
# programs may be run is tried: mount options are not all that forbids it. A directory that others may write to is
# passed over: somebody may have made it before us.
# unwork DIRECTORY: removes what work printed, and what was made above it once nothing else is in there.
# shellcheck disable=SC2174  # those above it are for everybody to see
: "${work_dirs:?}"
: "${enough_kib:?}"
work() (
  umask 022
  name=$1
  eval "set -- $work_dirs"
  for dir; do
    there=$dir
    until [ -d "$there" ]; do there=$(dirname -- "$there"); done
    free=$(timeout -k 1 5 df -Pk -- "$there" | awk 'NR == 2 { print $4 }')
    [ "${free:-0}" -lt "$enough_kib" ] || free=$enough_kib
    printf '%s %s\n' "${free:-0}" "$dir"
  done 2>/dev/null | sort -s -k 1,1nr | {
    while read -r _ dir; do
      mkdir -p -m 700 -- "$dir"
      [ -n "$(find "$dir" -maxdepth 0 -type d -uid "$(id -u)" ! -perm /022)" ] || continue
      own=$dir/$name
      rm -rf -- "$own"
      if mkdir -m 700 -- "$own" && echo '#!/bin/sh' >"$own/try" && chmod 700 "$own/try" && "$own/try"; then
        rm -f -- "$own/try"
        printf '%s\n' "$own"
        exit 0
      fi
      unwork "$own"
    done 2>/dev/null
    exit 1
  }
)
unwork() {
  rm -rf -- "$1"
  made=${1%/*}
  rmdir -- "$made" 2>/dev/null || return 0
  made=${made%/*}
  [ "${made##*/}" != hostwright ] || rmdir -- "$made" 2>/dev/null || :
}
