"""What a host was before Hostwright first changed it, as it is kept on the host itself, below ``ORIGIN``.

``packages``, ``manual``, ``passwd`` and ``group`` are written once, by the run that is about to change the host for the
first time (``RECORD``). Below ``files`` there is for each path that is Hostwright's now a mark, ``PATH.written``, and
for what was there before a copy, ``PATH.kept``; ``PATH.made`` marks a directory that did not exist, ``PATH.changed`` a
file of others out of which ours was taken. ``units`` says how a unit was before it was switched on, and ``installed``
names the packages that we installed, ``brought`` those that came with ours and may outlast them. One file for each
path, since roles work side by side.

A host that was provisioned before there was such a record has none: then only what is Hostwright's beyond doubt can be
taken away.
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

#: whether somebody wrote down what was there before the first change
RECORDED = Probe(f"test -e {ORIGIN}/packages", root=True)
#: dpkg's rows as ``resources.dpkg.DPKG`` asks for them, from before the first change
PACKAGES_BEFORE = Probe(f"cat {ORIGIN}/packages", root=True, cap_bytes=1024 * 1024)
#: names of the packages that were not merely brought by others, of that time
MANUAL_BEFORE = Probe(f"cat {ORIGIN}/manual", root=True, cap_bytes=256 * 1024)
#: packages that Hostwright installed; of what came after the first change, whatever else is there is somebody else's
INSTALLED_BY_US = Probe(f"cat {INSTALLED}", root=True, cap_bytes=256 * 1024)
#: ``passwd`` and ``group`` of that time: names of accounts, then of groups, each after its kind
ACCOUNTS_BEFORE = Probe(
    sh("cd %s && sed 's/:.*//; s/^/user /' passwd && sed 's/:.*//; s/^/group /' group", ORIGIN), root=True
)

#: A root program that writes down what is on a host; it does nothing where that was done before.
RECORD = sh_file(__file__, "sh/record.sh", origin=ORIGIN, installed=INSTALLED)
#: ``made PATH`` marks a directory that is about to be made, and those above it that are not there either.
_MADE = sh_file(__file__, "sh/made.sh", origin=ORIGIN)
#: ``keep PATH`` keeps what is at a path, once for each path.
_KEEP = _MADE + sh_file(__file__, "sh/keep.sh", origin=ORIGIN)
#: ``forget PATH``: it is the host's own again. ``tidy PATH``: directories that we made go, from this one upwards, as
#: far as they are empty.
FORGET = sh_file(__file__, "sh/forget.sh", origin=ORIGIN)
#: ``note PACKAGE...``: what is not there now is about to be installed by us.
_NOTE = sh_file(__file__, "sh/note.sh", installed=INSTALLED)


def packages_before(facts: Facts) -> Mapping[str, Installed] | None:
    """dpkg's database before the first change; ``None`` where nobody wrote it down. Reads ``PACKAGES_BEFORE``."""
    answer = facts[PACKAGES_BEFORE]
    return parse_dpkg(answer.text) if answer.ok and not answer.truncated else None


def installed_by_us(facts: Facts) -> frozenset[str] | None:
    """Names of the packages that Hostwright installed; ``None`` where an earlier release of it did not write them down.

    Reads ``INSTALLED_BY_US``.
    """
    answer = facts[INSTALLED_BY_US]
    return frozenset(answer.text.split()) if answer.ok and not answer.truncated else None


def note_installed(packages: tuple[str, ...]) -> str:
    """Commands that write down which of these packages (``name`` or ``name=version``) are about to be installed."""
    return f"{_NOTE}note {words(tuple(package.partition('=')[0] for package in packages))}"


def keep_original(path: str) -> str:
    """Commands that keep what is at ``path`` before it is written for the first time; later they do nothing.

    They must come before anything that makes the path's directory. What they keep, ``Original`` puts back.
    """
    return _KEEP + sh("keep %s", path)


def made_directory(path: str) -> str:
    """Commands that mark a directory that is about to be made, and those above it, as not there before."""
    return _MADE + sh("made %s", path)


def written(path: str) -> str:
    """The mark of a path that is Hostwright's."""
    return f"{FILES}{path}.written"


def kept(path: str) -> str:
    """The copy of what was at a path before."""
    return f"{FILES}{path}.kept"


def changed(path: str) -> str:
    """The mark of a file that is not ours, out of which we took what we had put there; it is as old as that is."""
    return f"{FILES}{path}{MARK}"


def mark_changed(path: str) -> str:
    """Commands that make that mark, or make it new."""
    mark = changed(path)
    folder = mark.rpartition("/")[0]
    return sh("mkdir -p -m 700 -- %s; mkdir -p -- %s; touch -- %s; sync -- %s", ORIGIN, folder, mark, mark)


def made(path: str) -> str:
    """The mark of a directory that did not exist before."""
    return f"{FILES}{path}.made"


def unit_before(unit: str) -> str:
    """The file that says how a unit was (``systemctl show``'s lines) before it was switched on."""
    return f"{UNITS}/{unit}"


def keep_unit(unit: str) -> str:
    """A command that writes down how a unit is before it is switched on for the first time."""
    path = unit_before(unit)
    show = sh("systemctl show -p ActiveState,UnitFileState -- %s >%s.new; mv -f -- %s.new %s", unit, path, path, path)
    return sh("[ -e %s ] || { mkdir -p -m 700 -- %s; mkdir -p -- %s; ", path, ORIGIN, UNITS) + f"{show}; }}"
