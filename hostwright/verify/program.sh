# Runs $program with its $arguments in a directory of its own ($TMPDIR) in which programs may be run, and removes that.
# It is their home, too: what they keep there (the driver's cache of compiled code) goes with it.
# Exits with $nowhere where there is none. It needs `work` and `unwork` of hostwright.apply.jobs.
: "${program:?}"
: "${arguments?}"
: "${nowhere:?}"
TMPDIR=$(work "check.$$") || { echo 'no directory was found in which programs may be run' >&2; exit "$nowhere"; }
HOME=$TMPDIR
export TMPDIR HOME
eval "set -- $arguments"
/bin/sh -c "$program" sh "$@" </dev/null; status=$?
unwork "$TMPDIR"
exit "$status"
