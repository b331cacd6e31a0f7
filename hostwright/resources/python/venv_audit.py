"""One cheap look at venvs: versions from the names of their ``dist-info``, damage from the sizes that pip recorded.

Nothing is imported and nothing is hashed: for an environment of 1.5 GB that is 5,300 names and sizes, about 20 ms.
Headers (``include/``, used by nobody at run time) and compiled caches are left out; they are two thirds of all files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name
from packaging.version import Version

from hostwright.common.quoting import sh_file
from hostwright.plan.model import Probe
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.python.users_files import MARKER, USERS_FILES

NO_PERL = 3  #: the exit status of a host without perl, which compares the sizes


@dataclass(frozen=True, slots=True)
class Dist:
    """One installed package as its ``dist-info`` directory says; ``damage`` is a file that is not as recorded."""

    directory: str
    recorded: bool
    damage: str = ""

    @property
    def name(self) -> str:
        """The package's name."""
        return self.directory.removesuffix(".dist-info").rpartition("-")[0]

    @property
    def version(self) -> str:
        """The package's version."""
        return self.directory.removesuffix(".dist-info").rpartition("-")[2]

    @property
    def flaw(self) -> str:
        """What is wrong with it besides its version, to be written behind its name and version."""
        if not self.recorded:
            return " without pip's record of it"
        return f" ({self.damage.removeprefix('../../../')} missing or changed)" if self.damage else ""


@dataclass(frozen=True, slots=True)
class FoundVenv:
    """One complete venv as found."""

    constraints: str = ""  #: sha256 of its constraints file
    dists: tuple[Dist, ...] = ()
    gone: tuple[str, ...] = ()  #: which of ``interpreter``, ``pip``, ``site-packages`` are not there

    @property
    def lost(self) -> tuple[str, ...]:
        """What is gone, and pip where it is damaged: the rest could not be repaired without it."""
        damaged = [dist.name for dist in self.dists if dist.name == "pip" and dist.flaw]
        return tuple(dict.fromkeys([*self.gone, *damaged]))


@dataclass(frozen=True, slots=True)
class Venvs:
    """Where the link leads (empty when there is none), and the complete venvs by directory."""

    link: str = ""
    homes: Mapping[str, FoundVenv] = field(default_factory=dict)
    instead: str = ""  #: what is in the place of the link, in words
    #: paths that people added, by venv, in those that another link or a new build takes from them
    users_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def audit_probe(link: str, homes: tuple[str, ...], constraints: str) -> Probe:
    """The probe of a link, those of these venvs that were completed, and what people put into others of the name."""
    stem = homes[0].partition("-py3.")[0]
    values = {"link": link, "homes": homes, "marker": MARKER, "constraints": constraints, "stem": stem}
    return Probe(USERS_FILES + sh_file(__file__, "sh/venv_audit.sh", **values, no_perl=NO_PERL), shared=True)


def parse_audit(text: str) -> Venvs:
    """The answer to ``audit_probe``."""
    link = instead = ""
    users_files: defaultdict[str, list[str]] = defaultdict(list)
    homes: dict[str, list[tuple[str, str, str]]] = {}  # the words of each venv's lines
    home = ""
    for line in text.splitlines():
        kind, _, rest = line.partition("\t")
        value, _, more = rest.partition("\t")
        if kind == "link":
            link = value
        elif kind == "instead":
            instead = value
        elif kind == "added":
            users_files[value].append(more)
        elif kind == "home":
            home = value
            homes[home] = []
        elif home in homes:
            homes[home].append((kind, value, more))
    found = {home: _found_venv(lines) for home, lines in homes.items()}
    return Venvs(link, found, instead, {home: tuple(paths) for home, paths in users_files.items()})


def _found_venv(lines: list[tuple[str, str, str]]) -> FoundVenv:
    damage = {value: more for kind, value, more in lines if kind == "damage"}
    return FoundVenv(
        constraints=next((value for kind, value, _ in lines if kind == "constraints"), ""),
        dists=tuple(
            Dist(value, more == "recorded", damage.get(value, "")) for kind, value, more in lines if kind == "dist"
        ),
        gone=tuple(value for kind, value, _ in lines if kind == "gone"),
    )


@dataclass(frozen=True, slots=True)
class Drift:
    """How one package differs: what is installed, what should be, ``dist-info`` directories that pip cannot remove."""

    name: str
    have: str
    version: str
    stale: tuple[str, ...] = ()


def find_drifts(pins: Mapping[str, str], venv: FoundVenv) -> list[Drift]:
    """The pinned packages that are not as pip put them: another version, two versions, absent, files changed."""
    drifts = []
    by_name: defaultdict[str, list[Dist]] = defaultdict(list)
    for dist in venv.dists:
        by_name[canonicalize_name(dist.name)].append(dist)
    for name, version in sorted(pins.items()):
        dists = by_name[name]
        right = [dist for dist in dists if same_version(dist.version, version)]
        if len(dists) == 1 and right and dists[0].recorded and not dists[0].damage:
            continue
        stale = tuple(dist.directory for dist in dists if not dist.recorded or (right and dist not in right))
        have = " and ".join(f"{name} {dist.version}{dist.flaw}" for dist in dists) or f"{name} {ABSENT}"
        drifts.append(Drift(name, have, version, stale))
    return drifts


def same_version(have: str, want: str) -> bool:
    """Whether two versions are the same, however they are written."""
    try:
        return Version(have) == Version(want)
    except ValueError:  # no version, or one of thousands of digits
        return have == want
