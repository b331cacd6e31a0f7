# Compiles what Python would compile anew at each import, as nobody but root may write into a venv. It fails for
# nothing, like pip's own: some packages have files in them that are for another Python. Where several processes cannot
# be had, one does it.
: "${python:?}"
: "${site:?}"
: "${most:?}"
: "${deepest:?}"
compiled() { "$python" -I -m compileall -q -r "$deepest" "$@" "$site" >/dev/null 2>&1; }
processors=$(nproc)
compiled -j "$((processors < most ? processors : most))" || compiled || :
