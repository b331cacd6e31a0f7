# Files and links whose names match the shell pattern $names in $directories, a path a line, but for those whose paths match
# one of the patterns $right, and those that a package owns: dpkg takes 40 ms a question, and is asked about what is left.
: "${directories:?}"
: "${names:?}"
: "${right?}"
eval "set -- $directories"
for directory; do
  eval "set -- $right"
  # shellcheck disable=SC2254,SC2086  # the patterns are patterns
  for path in "$directory"/$names; do
    if [ ! -L "$path" ] && { [ ! -e "$path" ] || [ -d "$path" ]; }; then continue; fi
    for pattern; do case $path in $pattern) continue 2 ;; esac; done
    dpkg-query -S -- "$path" >&2 || echo "$path"
  done
done
