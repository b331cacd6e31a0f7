"""The original state of a host, before Hostwright first changed it, kept on the host itself below ``ORIGIN``.

``packages``, ``manual``, ``passwd`` and ``group`` are written once, by the run that is about to change the host for the
first time (``RECORD``). Below ``files``, each path that is now Hostwright's has a mark, ``PATH.written``, and a copy of
what was there before, ``PATH.kept``; ``PATH.made`` marks a directory that did not exist, ``PATH.changed`` a file of
others from which our part was removed. ``units`` records the state of a unit before it was enabled, ``installed`` names
the packages that we installed, and ``brought`` those that came with ours and may outlast them. Each path has its own
file, since roles run in parallel.

A host that was provisioned by an earlier version has no such record: then only what is certainly Hostwright's can be
removed.
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
MARK = ".changed"  #: the end of the name of ``changed``

#: whether the original state was recorded before the first change
RECORDED = Probe(f"test -e {ORIGIN}/packages", root=True)
#: dpkg's rows in the format of ``resources.dpkg.DPKG``, from before the first change
PACKAGES_BEFORE = Probe(f"cat {ORIGIN}/packages", root=True, cap_bytes=1024 * 1024)
#: names of the packages that were marked as manually installed at that time
MANUAL_BEFORE = Probe(f"cat {ORIGIN}/manual", root=True, cap_bytes=256 * 1024)
#: packages that Hostwright installed; any other package that came after the first change is somebody else's
INSTALLED_BY_US = Probe(f"cat {INSTALLED}", root=True, cap_bytes=256 * 1024)
#: ``passwd`` and ``group`` of that time: names of users, then of groups, each after the word for its kind
ACCOUNTS_BEFORE = Probe(
    sh("cd %s && sed 's/:.*//; s/^/user /' passwd && sed 's/:.*//; s/^/group /' group", ORIGIN), root=True
)

#: The shell function ``automatic``: the packages that apt has marked as installed for others' sake.
_AUTOMATIC = sh_file(__file__, "sh/automatic.sh")
#: A root program that records the original state of a host; it does nothing if that was done before.
RECORD = _AUTOMATIC + sh_file(__file__, "sh/record.sh", origin=ORIGIN, installed=INSTALLED)
#: ``made PATH`` marks a directory that is about to be made, and its missing parents.
_MADE = sh_file(__file__, "sh/made.sh", origin=ORIGIN)
#: ``keep PATH`` keeps what is at a path, once for each path.
_KEEP = _MADE + sh_file(__file__, "sh/keep.sh", origin=ORIGIN)
#: ``forget PATH``: the path is the host's own again. ``tidy PATH``: remove the directories that we made, from this one
#: upwards, as long as they are empty.
FORGET = sh_file(__file__, "sh/forget.sh", origin=ORIGIN)
#: ``note PACKAGE...``: those that are not installed now are about to be installed by us.
_NOTE = _AUTOMATIC + sh_file(__file__, "sh/note.sh", installed=INSTALLED)


def packages_before(facts: Facts) -> Mapping[str, Installed] | None:
    """dpkg's database before the first change; ``None`` if it was not recorded. Reads ``PACKAGES_BEFORE``."""
    answer = facts[PACKAGES_BEFORE]
    return parse_dpkg(answer.text) if answer.ok and not answer.truncated else None


def installed_by_us(facts: Facts) -> frozenset[str] | None:
    """Names of the packages that Hostwright installed; ``None`` if an earlier version of it did not record them.

    Reads ``INSTALLED_BY_US``.
    """
    answer = facts[INSTALLED_BY_US]
    return frozenset(answer.text.split()) if answer.ok and not answer.truncated else None


def note_installed(packages: tuple[str, ...]) -> str:
    """Commands that record which of these packages (``name`` or ``name=version``) are about to be installed."""
    return f"{_NOTE}note {words(tuple(package.partition('=')[0] for package in packages))}"


def keep_original(path: str) -> str:
    """Commands that keep what is at ``path`` before it is written for the first time; later they do nothing.

    They must come before anything that makes the path's directory. ``Original`` restores what they keep.
    """
    return _KEEP + sh("keep %s", path)


def made_directory(path: str) -> str:
    """Commands that mark a directory that is about to be made, and its missing parents, as new."""
    return _MADE + sh("made %s", path)


def written(path: str) -> str:
    """The mark of a path that is Hostwright's."""
    return f"{FILES}{path}.written"


def kept(path: str) -> str:
    """The copy of what was at a path before."""
    return f"{FILES}{path}.kept"


def changed(path: str) -> str:
    """The mark of a file of others from which we removed our part; its time is the time of the removal."""
    return f"{FILES}{path}{MARK}"


def mark_changed(path: str) -> str:
    """Commands that create that mark, or renew it."""
    mark = changed(path)
    folder = mark.rpartition("/")[0]
    return sh("mkdir -p -m 700 -- %s; mkdir -p -- %s; touch -- %s; sync -- %s", ORIGIN, folder, mark, mark)


def made(path: str) -> str:
    """The mark of a directory that did not exist before."""
    return f"{FILES}{path}.made"


def unit_before(unit: str) -> str:
    """The file with a unit's former state (lines of ``systemctl show``), from before it was enabled."""
    return f"{UNITS}/{unit}"


def keep_unit(unit: str) -> str:
    """A command that records a unit's state before it is enabled for the first time."""
    path = unit_before(unit)
    show = sh("systemctl show -p ActiveState,UnitFileState -- %s >%s.new; mv -f -- %s.new %s", unit, path, path, path)
    return sh("[ -e %s ] || { mkdir -p -m 700 -- %s; mkdir -p -- %s; ", path, ORIGIN, UNITS) + f"{show}; }}"
