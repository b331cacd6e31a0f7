"""The state of a host before Hostwright's first change, recorded on the host itself below ``ORIGIN``.

``packages``, ``manual``, ``passwd`` and ``group`` are written once, immediately before the first change (``RECORD``).
``units`` has the state of each unit before Hostwright enabled it. ``installed`` lists the packages that Hostwright
installed, and ``brought`` the dependencies that apt installed for these packages.

Below ``files``, each path that Hostwright wrote has a mark, ``PATH.written``, and a copy of its former content,
``PATH.kept``. ``PATH.made`` marks a directory that did not exist. ``PATH.changed`` marks another owner's file from
which Hostwright's part was removed. One mark per path allows roles to run in parallel.

Without a record, only files that are certainly Hostwright's can be removed.
"""

from __future__ import annotations

from collections.abc import Mapping

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.model import Facts, Probe
from hostwright.resources.packages.dpkg import Installed, parse_dpkg

ORIGIN = "/var/lib/hostwright/origin"
FILES = f"{ORIGIN}/files"
UNITS = f"{ORIGIN}/units"
BROUGHT = f"{ORIGIN}/brought"
INSTALLED = f"{ORIGIN}/installed"
MARK = ".changed"

#: probe that succeeds if the original state of the host is recorded
RECORDED = Probe(f"test -e {ORIGIN}/packages", root=True)
#: probe for dpkg's rows before Hostwright's first change, in the format of ``dpkg.DPKG``
PACKAGES_BEFORE = Probe(f"cat {ORIGIN}/packages", root=True, cap_bytes=1024 * 1024)
#: probe for the packages that were marked as manually installed before Hostwright's first change
MANUAL_BEFORE = Probe(f"cat {ORIGIN}/manual", root=True, cap_bytes=256 * 1024)
#: probe for the packages that Hostwright installed
INSTALLED_BY_US = Probe(f"cat {INSTALLED}", root=True, cap_bytes=256 * 1024)
#: probe for the lines ``user NAME`` and ``group NAME`` of accounts before Hostwright's first change
ACCOUNTS_BEFORE = Probe(
    sh("cd %s && sed 's/:.*//; s/^/user /' passwd && sed 's/:.*//; s/^/group /' group", ORIGIN), root=True
)

#: shell function ``automatic`` that prints the packages that apt marks as automatically installed
_AUTOMATIC = sh_file(__file__, "sh/automatic.sh")
#: shell script for root that records the original state of a host once
RECORD = _AUTOMATIC + sh_file(__file__, "sh/record.sh", origin=ORIGIN, installed=INSTALLED)
#: shell function ``made PATH`` that records a directory and missing parents as made by Hostwright
_MADE = sh_file(__file__, "sh/made.sh", origin=ORIGIN)
#: shell function ``keep PATH`` that copies a file once, before Hostwright first writes the file
_KEEP = _MADE + sh_file(__file__, "sh/keep.sh", origin=ORIGIN)
#: shell functions ``forget PATH``, which deletes the records and the copy of PATH, and ``tidy PATH``, which removes
#: PATH and the parents of PATH that are empty and were made by Hostwright
FORGET = sh_file(__file__, "sh/forget.sh", origin=ORIGIN)
#: shell function ``note PACKAGE...`` that records each PACKAGE as installed by Hostwright, unless already installed
_NOTE = _AUTOMATIC + sh_file(__file__, "sh/note.sh", installed=INSTALLED)


def packages_before(facts: Facts) -> Mapping[str, Installed] | None:
    """dpkg's database before Hostwright's first change, from ``PACKAGES_BEFORE``; ``None`` if it was not recorded."""
    answer = facts[PACKAGES_BEFORE]
    return parse_dpkg(answer.text) if answer.ok and not answer.truncated else None


def installed_by_us(facts: Facts) -> frozenset[str] | None:
    """Names of the packages that Hostwright installed, from ``INSTALLED_BY_US``; ``None`` without a record."""
    answer = facts[INSTALLED_BY_US]
    return frozenset(answer.text.split()) if answer.ok and not answer.truncated else None


def note_installed(packages: tuple[str, ...]) -> str:
    """Commands that record which of these packages (``name`` or ``name=version``) Hostwright is about to install."""
    return f"{_NOTE}note {words(tuple(package.partition('=')[0] for package in packages))}"


def keep_original(path: str) -> str:
    """Commands that copy the file or link at ``path``, once, before Hostwright first writes it.

    Run these commands before any command that creates the path's directory.
    """
    return _KEEP + sh("keep %s", path)


def made_directory(path: str) -> str:
    """Commands that record ``path`` and its missing parents as made by Hostwright. Run them before ``mkdir``."""
    return _MADE + sh("made %s", path)


def written(path: str) -> str:
    """Path of the marker file that shows that Hostwright wrote a file or link at ``path``."""
    return f"{FILES}{path}.written"


def kept(path: str) -> str:
    """Path of the copy of the former file or link at ``path``."""
    return f"{FILES}{path}.kept"


def changed(path: str) -> str:
    """Path of the marker file for ``path``, another owner's file from which Hostwright's part was removed.

    The marker's mtime is the time of the removal.
    """
    return f"{FILES}{path}{MARK}"


def mark_changed(path: str) -> str:
    """Commands that create the marker file ``changed(path)``, or update its mtime."""
    mark = changed(path)
    folder = mark.rpartition("/")[0]
    return sh("mkdir -p -m 700 -- %s; mkdir -p -- %s; touch -- %s; sync -- %s", ORIGIN, folder, mark, mark)


def made(path: str) -> str:
    """Path of the marker file that shows that Hostwright created the directory ``path``."""
    return f"{FILES}{path}.made"


def unit_before(unit: str) -> str:
    """Path of the file with the unit's state before Hostwright enabled it, as lines of ``systemctl show``."""
    return f"{UNITS}/{unit}"


def keep_unit(unit: str) -> str:
    """Command that records the unit's state, once, before Hostwright first enables the unit."""
    path = unit_before(unit)
    show = sh("systemctl show -p ActiveState,UnitFileState -- %s >%s.new; mv -f -- %s.new %s", unit, path, path, path)
    return sh("[ -e %s ] || { mkdir -p -m 700 -- %s; mkdir -p -- %s; ", path, ORIGIN, UNITS) + f"{show}; }}"
