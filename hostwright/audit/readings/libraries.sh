# The libraries in the loader's cache whose names begin as the expression $stems says. Of each, the first entry for this
# machine is used, as the loader does; links in its directory are followed, but for one at /usr/local itself.
: "${stems:?}"
found=$(bounded ldconfig -p |
  sed -nE "s/^[[:space:]]*(($stems)[.]so[.][0-9.]+) [(]libc6,x86-64[^)]*[)] => /\\1 /p")
seen=; set --
while read -r name path; do
  case " $seen " in *" $name "*) ;; *) seen="$seen $name"; set -- "$@" "${path%/*}" "$path" ;; esac
done <<END
$found
END
if [ -n "$seen" ]; then
  real=$(readlink -m -- "$@")
  for name in $seen; do
    read -r directory; read -r file
    if [ -e "$file" ]; then value=${file##*.so.}; else value=; fi
    say "library $name" "$value"
    well_known "$directory"; say "loader $name" "$value/$name"
  done <<END
$real
END
fi
