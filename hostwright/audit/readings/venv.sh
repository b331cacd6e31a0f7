# The Python of a virtual environment and the versions of its packages "$@", by their dist-info directories.
: "${venv:?}"
: "${label:?}"
python=; site=
for folder in "$venv"/lib/python3.*/site-packages; do
  if [ -d "$folder" ]; then site=$folder; folder=${folder%/*}; python=${folder##*/python}; fi
done
say "python of $label" "$python"
for name do
  value=
  for folder in "$site/$name"-[0-9]*.dist-info; do
    if [ -n "$site" ] && [ -d "$folder" ]; then folder=${folder##*/"$name"-}; value="$value ${folder%.dist-info}"; fi
  done
  say "dist $name of $label" "${value# }"
done
