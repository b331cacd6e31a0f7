"""Fast check of venvs: versions are read from the names of ``dist-info`` directories, damage is found by file sizes.

Nothing is imported or hashed. The check takes 20 ms for the 5,300 files of an environment of 1.5 GB. Headers
(``include/``) and compiled Python files, two thirds of all files, are not checked.
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

NO_PERL = 3  #: exit status of the probe if the host has no perl


@dataclass(frozen=True, slots=True)
class Dist:
    """A package that is installed in a venv. ``damage`` is the path of a file that differs from pip's record."""

    directory: str
    recorded: bool
    damage: str = ""

    @property
    def name(self) -> str:
        return self.directory.removesuffix(".dist-info").rpartition("-")[0]

    @property
    def version(self) -> str:
        return self.directory.removesuffix(".dist-info").rpartition("-")[2]

    @property
    def flaw(self) -> str:
        """Text about the package's damage, to append to its name and version; empty without damage."""
        if not self.recorded:
            return " without pip's record"
        return f" ({self.damage.removeprefix('../../../')} missing or changed)" if self.damage else ""


@dataclass(frozen=True, slots=True)
class FoundVenv:
    """A complete venv on the host."""

    constraints: str = ""  #: sha256 of the constraints file that the venv contains
    dists: tuple[Dist, ...] = ()
    gone: tuple[str, ...] = ()  #: missing parts of the venv: ``interpreter``, ``pip`` or ``site-packages``

    @property
    def lost(self) -> tuple[str, ...]:
        """Missing parts of the venv, and a damaged pip, to restore before any package can be repaired."""
        damaged = [dist.name for dist in self.dists if dist.name == "pip" and dist.flaw]
        return tuple(dict.fromkeys([*self.gone, *damaged]))


@dataclass(frozen=True, slots=True)
class Venvs:
    """The venvs of one name on a host. ``link`` is the target of their link; empty without a link."""

    link: str = ""
    homes: Mapping[str, FoundVenv] = field(default_factory=dict)
    instead: str = ""  #: description of a file that is at the path of the link; empty without such a file
    #: path of a venv → files of people that a new build or a switch of the link would move aside
    users_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def audit_probe(link: str, homes: tuple[str, ...], constraints: str) -> Probe:
    """Probe for the link, the complete venvs among ``homes``, and users' files in other venvs of the same name."""
    stem = homes[0].partition("-py3.")[0]
    values = {"link": link, "homes": homes, "marker": MARKER, "constraints": constraints, "stem": stem}
    return Probe(USERS_FILES + sh_file(__file__, "sh/venv_audit.sh", **values, no_perl=NO_PERL), shared=True)


def parse_audit(text: str) -> Venvs:
    """Parse the output of ``audit_probe``."""
    link = instead = ""
    users_files: defaultdict[str, list[str]] = defaultdict(list)
    homes: dict[str, list[tuple[str, str, str]]] = {}
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
    """A package that differs from its pin. ``stale`` are ``dist-info`` directories that pip cannot remove."""

    name: str
    have: str
    version: str
    stale: tuple[str, ...] = ()


def find_drifts(pins: Mapping[str, str], venv: FoundVenv) -> list[Drift]:
    """Packages in ``pins`` that are missing, damaged, or installed with another version or twice in ``venv``."""
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
    """Whether two versions are equal after normalization."""
    try:
        return Version(have) == Version(want)
    except ValueError:  # `Version` also raises this error for thousands of digits
        return have == want
