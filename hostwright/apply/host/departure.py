"""Removes Hostwright's own files from a host after its last layer was removed, and frees space on a full disk.

These files stay: an operator's lock, the mark of a drained host, and moved files that could not be restored.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.host import jobs, locks, release
from hostwright.resources import originals
from hostwright.resources.files.archives_gone import RECORDS, SET_ASIDE
from hostwright.resources.python.users_files import HOMES, USERS_FILES
from hostwright.stack.stack import Artifact
from hostwright.stack.store import hostcache
from hostwright.transport.root.rootshell import RootShell

#: time limit in seconds of each program that removes Hostwright's files from a host (our choice)
CLEAN_TIMEOUT_S = 300.0

_FOLDERS = (
    jobs.JOBS_DIR, *jobs.WORK_DIRS, originals.ORIGIN, RECORDS, hostcache.CACHE,
    f"{locks.STATE_DIR}/releases", f"{locks.STATE_DIR}/images",
)  # fmt: skip
#: directories to remove from a host if empty
_PLACES = (
    locks.STATE_DIR,
    hostcache.CACHE.rpartition("/")[0],
    "/opt/hostwright/venvs",
    "/opt/hostwright",
    "/usr/local/lib/hostwright",
)

#: shell program that root runs to remove Hostwright's own files from a host without layers
DEPART = sh_file(__file__, "depart.sh", folders=_FOLDERS, release=release.PATH, set_aside=SET_ASIDE, places=_PLACES)

#: shell program that removes the release record of a host that is provisioned again at once
FORGET_RELEASE = sh("rm -f -- %s", release.PATH)


def clean_script(artifacts: Iterable[Artifact]) -> str:
    """Return a program for root that removes Hostwright's unneeded files from a host, except ``artifacts``."""
    kept = tuple(hostcache.host_path(artifact).split("/")[-2] for artifact in artifacts)
    return USERS_FILES + sh_file(
        __file__, "clean.sh", cache=hostcache.CACHE, kept=kept, marks=originals.FILES, homes=HOMES, jobs=jobs.JOBS_DIR
    )


def clean(shell: RootShell, artifacts: Iterable[Artifact]) -> None:
    """Remove Hostwright's unneeded files from a host, except the files of ``artifacts``. Raises ``HostError`` if the
    removal fails.
    """
    failure = "old files of Hostwright cannot be removed from the host's disk"
    shell.run(clean_script(artifacts), timeout_s=CLEAN_TIMEOUT_S, failure=failure)
