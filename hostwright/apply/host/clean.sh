# Makes room on a host: former files of ours that the stack no longer names, venvs that were replaced, archives that apt
# can fetch again, and the records of jobs that have ended. $kept are the checksums of the files that are still needed:
# each lies in a directory of that name. Needs set_aside, for what people put into venvs.
: "${cache:?}"
: "${kept?}"
: "${marks:?}"
: "${homes:?}"
: "${jobs:?}"
set -eu
eval "set -- $kept"
if cd "$cache" 2>/dev/null; then
  for file in *; do
    for name; do [ "$file" != "$name" ] || continue 2; done
    rm -rf -- "$file"
  done
fi

# A venv was replaced when one of the links that we know leads to another of its name, and none to it. We know those
# in /opt, and those of which the host says that they are ours: a venv whose link lies elsewhere is somebody's. So is
# one that a program runs from, has a library of open, or is being built into.
targets=$(
  {
    find /opt -maxdepth 1 -type l
    find "$marks" -name '*.written' 2>/dev/null | sed "s|^$marks||; s|[.]written\$||"
  } |
    while read -r link; do readlink -- "$link" || true; done
)
replaced() (
  name=${1##*/} by=
  while read -r target; do
    case $target in "$1") exit 1 ;; "$homes/${name%-py3.*}"-py3.*-????????????) by=$target ;; esac
  done
  [ -n "$by" ]
)
# shellcheck disable=SC2062  # /proc/[0-9]* are files: the pattern comes from standard input
used() {
  printf '%s\n' "$1" | grep -qzsF -f - /proc/[0-9]*/cmdline && return
  printf '%s\n' "$1" "$(readlink -m -- "$1")" | grep -qsF -f - /proc/[0-9]*/maps
}
for home in "$homes"/*-py3.*-????????????; do
  if [ -d "$home" ] && printf '%s\n' "$targets" | replaced "$home" && ! used "$home"; then
    set_aside "$home"
    rm -rf -- "$home" "$home.wheels"
  fi
done
if command -v apt-get >/dev/null; then apt-get clean; fi
for status in "$jobs"/*/status; do
  if [ -e "$status" ]; then rm -rf -- "${status%/*}"; fi
done
