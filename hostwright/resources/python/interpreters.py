"""Choice of a host's Python interpreter for a venv, and the distribution's package with which the interpreter can make
venvs.
"""

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

#: packages with a C compiler, for Python packages that compile extensions at run time
COMPILER = ("gcc", "libc6-dev")


def interpreter_home(python: str) -> str:
    """Directory of the stack's interpreter for ``python``, the same for all patch releases."""
    return f"/opt/hostwright/python{python}"


def system_interpreter(facts: Facts, wanted: tuple[str, ...]) -> tuple[str, str] | None:
    """Version and path of the first of the ``wanted`` Python versions that the host has; ``None`` without any.

    Only interpreters below ``/usr`` with the version in their path are used, because root runs them, and a plain
    ``python3`` changes with a distribution upgrade.
    """
    paths: dict[str, str] = {}
    for path, version in _rows(facts):
        if re.fullmatch(rf"/usr/.*/python{re.escape(version)}", path):
            paths.setdefault(version, path)
    return next(((version, paths[version]) for version in wanted if version in paths), None)


def why_not(facts: Facts, wanted: tuple[str, ...]) -> str:
    """Reasons why the host's interpreters of the ``wanted`` versions are not used; empty without such interpreters."""
    theirs = [(version, path) for path, version in dict.fromkeys(_rows(facts)) if version in wanted]
    named = " and ".join(f"{path} (Python {version})" for version, path in theirs)
    reason = "root runs only interpreters below /usr with the version in their name"
    return f"the host has {named}, but {reason}" if named else ""


def _rows(facts: Facts) -> list[tuple[str, str]]:
    rows = [line.split(" ") for line in facts[PYTHONS].text.splitlines()]
    return [(row[0], row[1]) for row in rows if len(row) == 2]


@dataclass(frozen=True, slots=True)
class VenvPackage(Resource):
    r"""The distribution's package with which the chosen Python can make venvs is installed.

    The chosen Python is the first of ``pythons`` that the host has; without any, the distribution's Python is
    installed. An interpreter below ``/usr/local`` needs no package. When the role is removed, the package is removed if
    it was not installed before; without a record of the original state it is kept.

    >>> print(plan_text(VenvPackage(("3.9", "3.8")), {"python3.14": "/usr/bin/python3.8 3.8\n"}))
    ~ packages python3.8-venv: python3.8-venv absent → python3.8-venv

    For packages that compile at run time, the headers of that Python and a C compiler are installed too.
    """

    pythons: tuple[str, ...]  #: Python versions in order of preference, such as ``3.9``
    #: mirror from which the host gets the packages; default: the host's own sources
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)
    compiles: bool = False  #: whether packages in the venv compile extensions at run time

    def probes(self) -> tuple[Probe, ...]:
        return (PYTHONS, *Debs((), mirror=self.mirror).probes())

    def plan(self, facts: Facts) -> Change | Refusal | None:
        packages = self._packages(facts)
        return packages.plan(facts) if packages else None

    def software(self, facts: Facts) -> tuple[Software, ...]:
        packages = self._packages(facts)
        return packages.software(facts) if packages else ()

    def packages_for(self, facts: Facts | None, /) -> tuple[str, ...]:
        if facts is None or PYTHONS not in facts:
            return self._of("python3")
        packages = self._packages(facts)
        return packages.packages if packages else ()

    def from_mirror(self, mirror: PackageMirror, /) -> VenvPackage:
        return replace(self, mirror=mirror)

    def _packages(self, facts: Facts) -> Debs | None:
        chosen = system_interpreter(facts, self.pythons)
        if chosen is None:
            return None if pythons(facts) else Debs(self._of("python3"), mirror=self.mirror)
        version, path = chosen
        names = self._of("" if path.startswith("/usr/local/") else f"python{version}")
        return Debs(names, mirror=self.mirror) if names else None

    def _of(self, python: str) -> tuple[str, ...]:
        own = (f"{python}-venv", *([f"{python}-dev"] if self.compiles else [])) if python else ()
        return (*own, *(COMPILER if self.compiles else ()))

    def removal(self) -> tuple[Resource, ...]:
        pythons = ("python3", *(f"python{version}" for version in self.pythons))
        return (DebsGone(tuple(name for python in pythons for name in self._of(python)), common=True),)
