"""Python interpreters of a host: which one a venv is made of, and the distribution's package that it takes for that."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from hostwright.plan.host.hostfacts import PYTHONS, pythons
from hostwright.plan.model import Change, Facts, Probe, Refusal, Resource
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.packages.debs_gone import DebsGone
from hostwright.resources.packages.packages import Debs
from hostwright.stack.store.debs import PackageMirror

#: with which packages compile extensions when they run; an interpreter of the stack brings its own headers
COMPILER = ("gcc", "libc6-dev")


def interpreter_home(python: str) -> str:
    """The directory of a Python that a stack brings; it is replaced in place by its next patch release."""
    return f"/opt/hostwright/python{python}"


def system_interpreter(facts: Facts, wanted: tuple[str, ...]) -> tuple[str, str] | None:
    """Version and path of the first of these Pythons that the host has, if any.

    Only one below ``/usr`` counts: root runs it, and a user may have put another first on their own PATH. It is named
    with its version: a venv of plain ``python3`` would become another Python's when the distribution moves on.
    """
    paths: dict[str, str] = {}
    for path, version in _rows(facts):
        if re.fullmatch(rf"/usr/.*/python{re.escape(version)}", path):
            paths.setdefault(version, path)
    return next(((version, paths[version]) for version in wanted if version in paths), None)


def why_not(facts: Facts, wanted: tuple[str, ...]) -> str:
    """Which interpreters of these versions a host has, none of which is taken, and why; empty where it has none."""
    theirs = [(version, path) for path, version in dict.fromkeys(_rows(facts)) if version in wanted]
    named = " and ".join(f"{path} (Python {version})" for version, path in theirs)
    reason = "root only runs an interpreter below /usr with its version in its name, which stays the same Python"
    return f"the host has {named}, but {reason}" if named else ""


def _rows(facts: Facts) -> list[tuple[str, str]]:
    rows = [line.split(" ") for line in facts[PYTHONS].text.splitlines()]
    return [(row[0], row[1]) for row in rows if len(row) == 2]


@dataclass(frozen=True, slots=True)
class VenvPackage(Resource):
    r"""The distribution's package is installed without which the chosen Python makes no venvs.

    Debian and Ubuntu ship ``ensurepip`` in a package of its own, ``python3.9-venv``. The Python chosen is the first of
    ``pythons`` that the host has; one below ``/usr/local`` is its administrator's and brings it. A host without any
    Python gets the distribution's. When the role is removed, the package goes if it was not there before, and stays
    where nobody wrote that down.

    >>> print(plan_text(VenvPackage(("3.9", "3.8")), {"python3.14": "/usr/bin/python3.8 3.8\n"}))
    ~ packages python3.8-venv: python3.8-venv absent → python3.8-venv

    Packages that compile when they run get the headers of that Python and a C compiler with it.
    """

    pythons: tuple[str, ...]  #: versions such as ``3.9``, in order of preference
    #: the packages of the mirror, where they come from there; ``None``: from the sources of the host
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)
    compiles: bool = False  #: whether its packages compile extensions when they run

    def probes(self) -> tuple[Probe, ...]:
        return (PYTHONS, *Debs((), mirror=self.mirror).probes())

    def plan(self, facts: Facts) -> Change | Refusal | None:
        packages = self._packages(facts)
        return packages.plan(facts) if packages else None

    def software(self, facts: Facts) -> tuple[Software, ...]:
        packages = self._packages(facts)
        return packages.software(facts) if packages else ()

    def packages_for(self, facts: Facts | None, /) -> tuple[str, ...]:
        """That of the Python that is taken; where nothing is known of the host's, the distribution's own."""
        if facts is None or PYTHONS not in facts:
            return self._of("python3")
        packages = self._packages(facts)
        return packages.packages if packages else ()

    def from_mirror(self, mirror: PackageMirror, /) -> VenvPackage:
        """Taken from the mirror."""
        return replace(self, mirror=mirror)

    def _packages(self, facts: Facts) -> Debs | None:
        chosen = system_interpreter(facts, self.pythons)
        if chosen is None:
            return None if pythons(facts) else Debs(self._of("python3"), mirror=self.mirror)
        version, path = chosen
        names = self._of("" if path.startswith("/usr/local/") else f"python{version}")
        return Debs(names, mirror=self.mirror) if names else None

    def _of(self, python: str) -> tuple[str, ...]:
        """The packages for this Python; none for one that its administrator brings."""
        own = (f"{python}-venv", *([f"{python}-dev"] if self.compiles else [])) if python else ()
        return (*own, *(COMPILER if self.compiles else ()))

    def removal(self) -> tuple[Resource, ...]:
        """Whichever of them was installed; others may use it too, so they count as common."""
        pythons = ("python3", *(f"python{version}" for version in self.pythons))
        return (DebsGone(tuple(name for python in pythons for name in self._of(python)), common=True),)
