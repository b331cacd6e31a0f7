# What a login shell of the user who runs this sets its paths to, as $trace tells; then `nvcc DIRECTORY`, where that is
# found, and `has PATH` for the libraries in the directories that are on its loader's path in the end. Needs has.
: "${trace:?}"
: "${most_s:?}"
rows=$(timeout -k 1 "$most_s" env -i HOME="$HOME" USER="$(id -un)" TERM=dumb /bin/bash -c "$trace" |
  grep -aE '^[+]+hostwright /[^ ]*: (export |declare -x )?(PATH|LD_LIBRARY_PATH)=' | cut -c1-2000 | tail -n 40)
[ -n "$rows" ] || exit 0
printf '%s\n' "$rows"
set -f
IFS=:
value() { printf '%s\n' "$rows" | sed -nE "s/^[^ ]* [^ ]* (export |declare -x )?$1=//p" | tail -n 1; }
for directory in $(value PATH); do
  if [ -x "$directory/nvcc" ]; then echo "nvcc $directory"; break; fi
done
for directory in $(value LD_LIBRARY_PATH); do
  case $directory in /*) has "${directory%/}" ;; esac
done
