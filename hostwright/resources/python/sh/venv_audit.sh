# What the link $link and those of the venvs $homes that have a $marker hold, one thing a line, its words between tabs.
# Needs users_files. Nothing is imported and nothing is hashed but $constraints, a file in each venv.
# shellcheck disable=SC2016  # the program is awk's
: "${link:?}"
: "${homes?}"
: "${marker:?}"
: "${constraints:?}"
: "${stem:?}"
printf 'link\t%s\n' "$(readlink -- "$link")"
if [ -d "$link" ] && [ ! -L "$link" ]; then printf 'instead\ta directory\n'
elif [ -e "$link" ] && [ ! -L "$link" ]; then printf 'instead\ta file\n'; fi
# pip's RECORDs are rows of path, hash and size; headers, caches and files outside of site-packages and bin/ are left out.
rows='
  $2 !~ /^sha256=/ || $1 ~ /(^|\/)(include|__pycache__)\// { next }
  $1 ~ /^\.\.\// && $1 !~ /^\.\.\/\.\.\/\.\.\/bin\// { next }
'
# First the files that there are (path, size, kind), then the RECORDs: the first file of each package that is missing or
# of another size.
compare='
  now { if ($3 ~ /^regular/) size[$1] = $2; next }
  FNR == 1 { told = 0 }
  told { next }
'$rows'
  $1 in size && size[$1] == $3 + longer && $1 ~ /^\.\.\/\.\.\/\.\.\/bin\// { next }
  !($1 in size) || size[$1] != $3 + 0 { split(FILENAME, part, "/"); printf "damage\t%s\t%s\n", part[1], $1; told = 1 }
'
# What people put into the venvs $stem-pyX.Y-KEY that a new link leaves, or that are built anew; where the link leads to a
# whole one that is wanted, that is neither.
target=$(readlink -- "$link")
for home in "$stem"-py3.*-????????????; do
  if [ "$home" = "$target" ] && [ -d "$(echo "$home"/lib/python3*/site-packages)" ]; then
    case " $homes " in *[\ \']"$home"[\ \']*) continue ;; esac
  fi
  [ ! -d "$home" ] || users_files "$home" | while IFS= read -r path; do printf 'added\t%s\t%s\n' "$home" "$path"; done
done
eval "set -- $homes"
for home in "$@"; do
  [ -e "$home/$marker" ] || continue
  set -- "$home"/lib/python3*/site-packages
  printf 'home\t%s\n' "$home"
  [ -x "$home/bin/python" ] || printf 'gone\tinterpreter\n'
  [ -d "$1/pip" ] || printf 'gone\tpip\n'
  cd "$1" || { printf 'gone\tsite-packages\n'; continue; }
  sum=$(sha256sum <"$home/$constraints") && printf 'constraints\t%s\n' "${sum%% *}"
  set --
  for dist in *.dist-info; do
    if [ -s "$dist/RECORD" ]; then
      set -- "$@" "$dist/RECORD"
      printf 'dist\t%s\trecorded\n' "$dist"
    else
      printf 'dist\t%s\tbare\n' "$dist"
    fi
  done
  [ $# -eq 0 ] || LC_ALL=C awk -F '[\t,]' "$rows{ print \$1 }" "$@" | xargs -r -d '\n' stat -c '%n	%s	%F' -- |
    LC_ALL=C awk -F '[\t,]' -v longer="$((${#home} + 5))" "$compare" now=1 - now= "$@"
done
