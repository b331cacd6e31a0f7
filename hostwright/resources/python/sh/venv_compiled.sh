# Compiles what Python would compile anew at each import, as nobody but root may write into a venv. It fails for
# nothing, like pip's own: some packages have files in them that are for another Python. Each process has a share of the
# files: compileall's own processes take a third more time of the processor, to hand the files out one by one.
: "${python:?}"
: "${site:?}"
: "${most:?}"
processors=$(nproc)
[ "$processors" -le "$most" ] || processors=$most
share=0
while [ "$share" -lt "$processors" ]; do
  {
    echo "$site/pip/__init__.py" # of an empty list, compileall would compile Python's own modules
    find "$site" -name '*.py' ! -type d | awk -v share="$share" -v of="$processors" 'NR % of == share'
  } | "$python" -I -m compileall -q -i - >/dev/null 2>&1 &
  share=$((share + 1))
done
wait
