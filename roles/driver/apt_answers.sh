# What apt would do and offers: for each of $verbs what a simulation of it prints, and for $names their policy. Each
# answer is "== hostwright NAME", its output, "== hostwright STATUS", its errors.
# At each start apt compares each pattern of its preferences with the name of every package, which for the driver's takes
# half a second. So it gets copies of them in which the names stand that a pattern matches; it takes them in the same order.
# shellcheck disable=SC2086  # names and options are words
: "${verbs:?}"
: "${names:?}"
work=$(mktemp -d -p /run 2>/dev/null || mktemp -d) || exit
trap 'rm -rf -- "$work"' EXIT
chmod 755 "$work"
folder=''
eval "$(apt-config shell folder Dir::Etc::PreferencesParts/d)"
folder=${folder%/}
options="-o Dir::Etc::PreferencesParts=$work/preferences.d"
mkdir "$work/preferences.d"
# A file with a continued line is copied as it is, and so are patterns of architectures, sources and regular expressions.
for file in "$folder"/*; do
  [ -f "$file" ] || continue
  if grep -q '^[[:blank:]]' "$file"; then cp "$file" "$work/preferences.d"; continue; fi
  sed -n 's/^Package:[[:blank:]]*//p' "$file" | tr -s '[:blank:]' '\n' | sort -u | grep '[*?[]' | grep -v -e '[:/\]' -e '^[*]$'
done >"$work/patterns"
# As regular expressions, to find in one pass what any pattern matches.
# shellcheck disable=SC2016  # the dollar is the end of a line
sed -e 's/[.+^$(){}|]/\\&/g' -e 's/\[!/[^/g' -e 's/[*]/.*/g' -e 's/?/./g' -e 's/.*/^&$/' "$work/patterns" >"$work/expressions"
apt-cache pkgnames | grep -E -f "$work/expressions" >"$work/matched"
for file in "$folder"/*; do
  copy=$work/preferences.d/${file##*/}
  if [ ! -f "$file" ] || [ -e "$copy" ]; then continue; fi
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      Package:*)
        set -f
        printf 'Package:'
        for word in ${line#Package:}; do
          case $word in
            '*' | *[:/\\]*) printf ' %s' "$word"; continue ;;
            *[*?[]*) printf ' hostwright-none' ;;
            *) printf ' %s' "$word"; continue ;;
          esac
          while IFS= read -r name; do
            # shellcheck disable=SC2254  # it is a pattern
            case $name in $word) printf ' %s' "$name" ;; esac
          done <"$work/matched"
        done
        set +f
        echo ;;
      *) printf '%s\n' "$line" ;;
    esac
  done <"$file" >"$copy"
done
answer() {
  printf '== hostwright %s\n' "$1"
  shift
  "$@" 2>"$work/errors"
  printf '\n== hostwright %s\n' "$?"
  sed "s|$work/preferences.d|$folder|g" "$work/errors"
}
for verb in $verbs; do answer "$verb" apt-get -s $options "$verb"; done
answer policy apt-cache $options policy $names
