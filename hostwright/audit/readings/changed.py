"""The latest changes on a host after its release record was written.

These changes are hints for problems that no failure rule matches.
"""

from __future__ import annotations

from hostwright.common.quoting import sh_file
from hostwright.common.text import short
from hostwright.plan.host.release import PATH
from hostwright.plan.model import Facts, Probe

MOST = 40  #: maximum number of changed packages, and of changed files, to read (our choice)

#: probe for changed files and packages. The probe reads the ctime, since a copy may preserve an old mtime.
CHANGED = Probe(sh_file(__file__, "changed.sh", record=PATH, most=str(MOST)), root=True)

#: paths of files whose changes are not reported. Boots and account tools write these files.
_NOISE = frozenset(
    (
        "/etc/ld.so.cache", "/etc/mtab", "/etc/adjtime", "/etc/resolv.conf", "/etc/.pwd.lock", "/etc/.updated",
        "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/subuid-", "/etc/subgid-",
    )
)  # fmt: skip
_DPKG = {"install": "installed", "upgrade": "upgraded", "remove": "removed", "purge": "purged"}


def changed_since(facts: Facts) -> tuple[str, ...]:
    """Return the packages, then the files (the latest first), that changed after the release record was written.

    Empty if the host has no record or was not probed. A package is listed once: ``package driverctl installed
    0.111-1``.
    """
    if CHANGED not in facts or not facts[CHANGED].ok:
        return ()
    rows = [line.split("\t") for line in facts[CHANGED].text.splitlines()]
    files = [row[1] for row in rows if row[0] == "file" and len(row) == 2 and row[1] not in _NOISE]
    packages = {row[1]: _package(*row[1:]) for row in rows if row[0] == "package" and len(row) == 4 and row[2] in _DPKG}
    return tuple(map(short, (*packages.values(), *files)))


def _package(name: str, action: str, version: str) -> str:
    text = f"package {name.partition(':')[0]} {_DPKG[action]}"
    return text if version == "<none>" else f"{text} {version}"
