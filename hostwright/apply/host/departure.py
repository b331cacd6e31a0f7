"""Removing what Hostwright itself keeps on a host, once every layer is removed; and making room on a full disk.

An operator's lock and the mark of a drained host are no part of what was installed, and stay; so does what was moved
aside and could not be put back. The history of a host stays in the journal of the machine that worked on it.
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

CLEAN_TIMEOUT_S = 300.0  #: our choice

_FOLDERS = (
    jobs.JOBS_DIR, *jobs.WORK_DIRS, originals.ORIGIN, RECORDS, hostcache.CACHE,
    f"{locks.STATE_DIR}/releases", f"{locks.STATE_DIR}/images",
)  # fmt: skip
#: Directories that go when nothing is left in them.
_PLACES = (
    locks.STATE_DIR,
    hostcache.CACHE.rpartition("/")[0],
    "/opt/hostwright/venvs",
    "/opt/hostwright",
    "/usr/local/lib/hostwright",
)

#: A root program for a host from which every layer is gone.
DEPART = sh_file(__file__, "depart.sh", folders=_FOLDERS, release=release.PATH, set_aside=SET_ASIDE, places=_PLACES)

#: A root program for a host whose layers are reprovisioned at once.
FORGET_RELEASE = sh("rm -f -- %s", release.PATH)


def clean_script(artifacts: Iterable[Artifact]) -> str:
    """A root program that makes room on a host, where these artifacts may stay."""
    kept = tuple(hostcache.host_path(artifact).split("/")[-2] for artifact in artifacts)
    return USERS_FILES + sh_file(
        __file__, "clean.sh", cache=hostcache.CACHE, kept=kept, marks=originals.FILES, homes=HOMES, jobs=jobs.JOBS_DIR
    )


def clean(shell: RootShell, artifacts: Iterable[Artifact]) -> None:
    """Make room on a host's disk: remove what Hostwright left there and no longer needs; these artifacts stay.

    Raises ``HostError``.
    """
    failure = "old files of Hostwright cannot be removed from its disk"
    shell.run(clean_script(artifacts), timeout_s=CLEAN_TIMEOUT_S, failure=failure)
