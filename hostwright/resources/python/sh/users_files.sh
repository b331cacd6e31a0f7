# users_files HOME: what people added to the complete venv HOME, a path in it a line; of a directory in which nothing is
# ours, the directory. Ours is what pip recorded of the packages that constraints.txt names, and what a new venv has. A
# name with a line break makes all of it people's (`.`); a build that was cut ($marker is missing) has nothing of theirs.
# set_aside HOME: moves these to set-aside/DATE beside the directory of the venvs, mode and owner kept; whatever fails
# ends the script, HOME still there.
# shellcheck disable=SC2016  # the program is awk's
: "${marker:?}"
whose='
  function canon(name) { name = tolower(name); gsub(/[-_.]+/, "-", name); return name }
  function parent(path) { return match(path, /\/[^\/]*$/) ? substr(path, 1, RSTART - 1) : "" }
  function own(path) { ours[path]; while ((path = parent(path)) != "") folder[path] }
  BEGIN {
    split("pip setuptools wheel pkg-resources", names, " "); for (n in names) pinned[names[n]]
    split("bin include lib lib/" python " " site " lib64 share", names, " "); for (n in names) folder[names[n]]
    folder[""]; folder["lib/" python]; folder[site]
    split("pyvenv.cfg lib64 constraints.txt constraints.txt.hostwright-backup .gitignore", names, " ")
    for (n in names) ours[names[n]]
  }
  phase == 1 { if (match($0, /^[A-Za-z0-9._-]+/)) pinned[canon(substr($0, 1, RLENGTH))]; next }
  phase == 2 && FNR == 1 {
    dist = parent(FILENAME); sub(/.*\//, "", dist); sub(/-[^-]*[.]dist-info$/, "", dist)
    mine = canon(dist) in pinned
  }
  phase == 2 {
    if (!mine) next
    path = $0; sub(/\r$/, "", path); sub(/,[^,]*,[^,]*$/, "", path)
    if (path ~ /^".*"$/) { path = substr(path, 2, length(path) - 2); gsub(/""/, "\"", path) }
    path = site "/" path
    while (sub(/[^\/]+\/\.\.\//, "", path)) continue
    own(path); next
  }
  $0 in ours || /^[.]hostwright-/ || /^share\/python-wheels\// || /^include\/python[0-9.]*\// { next }
  /^bin\/(python|pip|easy_install|activate|Activate[.]ps1)/ || $0 ~ "^" site "/~" { next }
  { while (!(parent($0) in folder)) $0 = parent($0) }
  !seen[$0]++
'
users_files() (
  cd -- "$1" || exit 1
  [ -e "$marker" ] || exit 0
  if [ -n "$(find . -name '*
*' -print -quit)" ]; then echo .; exit 0; fi
  site=; for site in lib/python3*/site-packages; do :; done
  python=${site#lib/}; python=${python%%/*}
  set -- phase=2
  for record in "$site"/*.dist-info/RECORD; do [ ! -s "$record" ] || set -- "$@" "$record"; done
  [ "$#" -gt 1 ] || set --
  if [ -s constraints.txt ]; then set -- phase=1 constraints.txt "$@"; fi
  find . -mindepth 1 -name __pycache__ -prune -o -type d ! -readable -printf '%P\n' -prune -o \
    ! -type d ! -name '*.pyc' -printf '%P\n' |
    LC_ALL=C awk -v site="$site" -v python="$python" "$whose" "$@" phase=3 -
)
set_aside() {
  theirs=$(users_files "$1")
  day=${1%/*/*}/set-aside/$(date +%Y-%m-%d)/${1##*/}
  printf '%s\n' "$theirs" | while IFS= read -r path; do
    if [ -z "$path" ] || { [ ! -e "$1/$path" ] && [ ! -L "$1/$path" ]; }; then continue; fi
    from=$1/$path place=$day/$path
    from=${from%/.} place=${place%/.}
    mkdir -p -- "${place%/*}"
    mv -T --backup=numbered -- "$from" "$place"
  done
}
