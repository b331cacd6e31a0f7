# The Python of a virtual environment and the versions of its packages "$@", by their dist-info directories.
: "${venv:?}"
: "${label:?}"
python=; site=
for one in "$venv"/lib/python3.*/site-packages; do
  if [ -d "$one" ]; then site=$one; one=${one%/*}; python=${one##*/python}; fi
done
say "python of $label" "$python"
for name do
  value=
  for one in "$site/$name"-[0-9]*.dist-info; do
    if [ -n "$site" ] && [ -d "$one" ]; then one=${one##*/"$name"-}; value="$value ${one%.dist-info}"; fi
  done
  say "dist $name of $label" "${value# }"
done
