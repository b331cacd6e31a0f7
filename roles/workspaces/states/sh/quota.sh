# Give directories a project and its limit (DIRECTORY PROJECT KIB, …; 0 takes the limit away). What is in a directory gets
# the project with the rights of its owner alone, who may put links there meanwhile.
: "${rows:?}"
: "${target:?}"
eval "set -- $rows"
while [ $# -ge 3 ]; do
  folder=$1 project=$2 kib=$3
  shift 3
  if [ "$kib" -gt 0 ]; then
    for each in "${folder%/*}" "$folder"; do
      if [ -L "$each" ]; then
        echo "$each is a link, where a directory for people's files must be" >&2
        exit 1
      fi
      [ -d "$each" ] || mkdir -m 711 -- "$each"
    done
    chattr +P -p "$project" -- "$folder"
    owner=$(stat -c '--reuid=%u --regid=%g' -- "$folder")
    # shellcheck disable=SC2086  # two words; files that go meanwhile are no mistake
    (cd -- "$folder" && setpriv $owner --clear-groups -- find . -xdev \
      \( -type d -exec chattr +P -p "$project" -- {} + \) -o \( -type f -exec chattr -p "$project" -- {} + \)) 2>/dev/null || :
  fi
  setquota -P "$project" 0 "$kib" 0 0 "$target"
done
