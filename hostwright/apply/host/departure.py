"""What Hostwright itself keeps on a host, and that it goes when every layer was to go and all are gone.

An operator's lock and the mark of a drained host are no part of what was installed, and stay; so does what was moved
aside and could not be put back. What a host did before is still in the journal of the machine that made it do so.
"""

from __future__ import annotations

from hostwright.common.quoting import sh, words
from hostwright.plan.host import jobs, locks, release
from hostwright.resources import originals
from hostwright.resources.files.archives_gone import RECORDS, SET_ASIDE
from hostwright.resources.python.python import HOMES
from hostwright.stack.stack import Stack
from hostwright.stack.store import hostcache
from hostwright.transport.root.rootshell import RootShell

CLEAN_TIMEOUT_S = 300.0

_FOLDERS = (jobs.JOBS_DIR, originals.ORIGIN, RECORDS, hostcache.CACHE)
_STATE = locks.STATE_DIR

#: A root program; directories that somebody else uses too stay.
SCRIPT = f"""\
set -eu
rm -rf -- {" ".join(_FOLDERS)} {_STATE}/releases
rm -f -- {release.PATH} {release.PATH}.new
if [ -d {SET_ASIDE} ]; then find {SET_ASIDE} -depth -type d -empty -delete; fi
for folder in {_STATE} {hostcache.CACHE.rpartition("/")[0]} /opt/hostwright/venvs /opt/hostwright \
/usr/local/lib/hostwright; do
  rmdir --ignore-fail-on-non-empty -- "$folder" 2>/dev/null || [ ! -d "$folder" ]
done
"""

#: A root program for a host whose layers are reprovisioned at once.
FORGET_RELEASE = f"rm -f -- {release.PATH}"

_UNMARKED = sh("%s", f"s|^{originals.FILES}||; s|[.]written$||")  #: the path of a mark, by sed

#: Former files of ours that the stack no longer names, venvs that were replaced, archives that apt can fetch again,
#: and the records of jobs that have ended. "$@" are the checksums of the files that are still needed: each lies in a
#: directory of that name.
#:
#: A venv was replaced when one of the links that we know leads to another of its name, and none to it. We know those
#: in /opt, and those of which the host says that they are ours: a venv whose link lies elsewhere is somebody's. So is
#: one that a program runs from, has a library of open, or is being built into.
_CLEAN = f"""\
set -eu
if cd {hostcache.CACHE} 2>/dev/null; then
  for file in *; do
    for name; do [ "$file" != "$name" ] || continue 2; done
    rm -rf -- "$file"
  done
fi
targets=$(
  {{ find /opt -maxdepth 1 -type l; find {originals.FILES} -name '*.written' 2>/dev/null | sed {_UNMARKED}; }} |
    while read -r link; do readlink -- "$link" || true; done
)
replaced() (
  name=${{1##*/}} by=
  while read -r target; do
    case $target in "$1") exit 1 ;; {HOMES}/"${{name%-py3.*}}"-py3.*-????????????) by=$target ;; esac
  done
  [ -n "$by" ]
)
used() {{
  printf '%s\n' "$1" | grep -qzsF -f - /proc/[0-9]*/cmdline || printf '%s\n' "$1" | grep -qsF -f - /proc/[0-9]*/maps
}}
for home in {HOMES}/*-py3.*-????????????; do
  if [ -d "$home" ] && printf '%s\n' "$targets" | replaced "$home" && ! used "$home"; then
    rm -rf -- "$home" "$home.wheels"
  fi
done
if command -v apt-get >/dev/null; then apt-get clean; fi
for status in {jobs.JOBS_DIR}/*/status; do
  if [ -e "$status" ]; then rm -rf -- "${{status%/*}}"; fi
done
"""


def clean_script(stack: Stack) -> str:
    """A root program that makes room."""
    kept = words(tuple(hostcache.host_path(one).split("/")[-2] for one in stack.used_artifacts))
    return f"set -- {kept}\n{_CLEAN}"


def clean(shell: RootShell, stack: Stack) -> None:
    """Make room on a host's disk: what Hostwright left there and no longer needs goes. Raises ``HostError``."""
    failure = "former files of ours cannot be taken off its disk"
    shell.run(clean_script(stack), timeout_s=CLEAN_TIMEOUT_S, failure=failure)
