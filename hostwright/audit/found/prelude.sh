# Functions for the program that lists what a host has: a row has a name and cells, without tabs and newlines in them.
LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
scope=
row() {
  printf '%s' "$scope"
  for cell; do
    case $cell in *[[:cntrl:]]*) cell=unprintable ;; esac
    printf '\t%.300s' "$cell"
  done
  printf '\n'
}
first_line() { # NAME FILE
  line=
  if [ -r "$2" ]; then IFS= read -r line <"$2"; fi
  row "$1" "$line"
}
# The files of the library $1 in the other directories, but not what links lead to: directory and version.
libraries() {
  library=$1; shift
  for place; do
    [ -d "$place" ] && [ ! -h "$place" ] || continue
    for file in "$place/$library".so.[0-9]*.[0-9]*; do
      [ ! -f "$file" ] || [ -h "$file" ] || row library "$place" "${file##*.so.}"
    done
  done
}
