# The libraries that the file names and that are not there, a line each. A comment begins with #.
: "${file:?}"
[ -s "$file" ] || exit 0
while read -r line || [ -n "$line" ]; do
  line=${line%%#*}
  IFS=' 	:'
  set -f
  for library in $line; do
    case $library in
      *'$'*) ;;
      /*) [ -e "$library" ] || printf '%s\n' "$library" ;;
    esac
  done
  unset IFS
done <"$file"
exit 0
