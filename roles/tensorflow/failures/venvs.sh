# Path, Python and dist-info directory, separated by tabs, of every package of every venv in /opt.
for home in /opt/*/; do
  home=${home%/}
  [ -f "$home/pyvenv.cfg" ] || continue
  for site in "$home"/lib/python3.*/site-packages; do
    [ -d "$site" ] || continue
    python=${site%/site-packages}; python=${python##*/python}
    for dist in "$site"/*.dist-info; do printf '%s\t%s\t%s\n' "$home" "$python" "${dist##*/}"; done
  done
done
exit 0
