"""A layer that is one Python environment: its section of a stack, its variables, its states, and rules for it.

The role of such a layer is a section that names the package, and a function that yields ``environment_states``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from typing import Annotated, Any, ClassVar, Literal

from packaging.utils import canonicalize_name
from packaging.version import Version
from pydantic import Field

from hostwright.plan.model import Resource
from hostwright.plan.roles.auditvalue import DISTRIBUTION, AuditValue, VenvPython, VenvVersion
from hostwright.resources.files.archives import ArchiveUnpacked, Part
from hostwright.resources.packages.packages import Debs
from hostwright.resources.python.hashes import listed_wheels, read_constraints
from hostwright.resources.python.interpreters import COMPILER, VenvPackage, interpreter_home
from hostwright.resources.python.python import Venv
from hostwright.resources.python.recipe import Recipe
from hostwright.resources.python.users_files import HOMES
from hostwright.resources.python.wheels import glibc_of
from hostwright.stack.fitting import Misfit, Rule
from hostwright.stack.stack import WORK, Section, Share, Stack, taken
from hostwright.stack.stackvalues import (
    ArtifactName,
    ExactVersion,
    Name,
    PythonVersion,
    RelativePath,
    StackPart,
    TextFile,
    WithoutNulls,
)

#: distribution → the minor version of its glibc 2.x (packages libc6 of each release)
GLIBC = {
    ("debian", "10"): 28, ("debian", "11"): 31, ("debian", "12"): 36, ("debian", "13"): 41,
    ("ubuntu", "18.04"): 27, ("ubuntu", "20.04"): 31, ("ubuntu", "22.04"): 35, ("ubuntu", "24.04"): 39,
    ("ubuntu", "26.04"): 43,
}  # fmt: skip


class Interpreter(StackPart):
    """A CPython that needs nothing of its host, in an archive whose directory ``inside`` holds ``bin/pythonX.Y``."""

    python: PythonVersion
    artifact: Annotated[str, ArtifactName]
    inside: RelativePath = "python"


class EnvironmentSection(Section):
    """A package in a venv of the first of ``pythons`` that the host has, or of the ``interpreter`` that it brings.

    ``constraints`` is the text of a pip constraints file by Python version (in YAML, the name of a file beside it),
    which may hold hashes; ``wheelhouses`` names an archive of wheels by Python version, for hosts without an index.
    ``wheels`` is a list of wheels with their sha256, in the form of ``sha256sum``. Where all pinned ones have a hash,
    pip takes no other. ``libraries`` are the libraries that it opens on the host at run time, with the layer that
    brings each; those that come as wheels are not among them.
    """

    title: ClassVar[str]  #: as sentences call it: ``Science``
    package: ClassVar[str]  #: as pip calls it: ``science``
    stem: ClassVar[str]  #: with which the names of its environments begin: ``science``
    compiles: ClassVar[bool] = False  #: whether it compiles extensions when it runs
    #: percent of the stack's ``free_bytes``: what pip unpacks, and the environment
    percents: ClassVar[Mapping[str, int]] = {WORK: 3, HOMES: 6}

    version: ExactVersion
    pythons: Annotated[tuple[PythonVersion, ...], Field(min_length=1)]
    interpreter: Interpreter | None = None
    constraints: Annotated[Mapping[PythonVersion, Annotated[str, TextFile]], WithoutNulls] = {}
    wheelhouses: Mapping[PythonVersion, Annotated[str, ArtifactName]] = {}
    wheels: Annotated[str, TextFile] = ""
    libraries: Mapping[str, Name] = {}

    @property
    def opens(self) -> tuple[str, ...]:
        """The layers of its ``libraries``."""
        return tuple(dict.fromkeys(self.libraries.values()))

    @property
    def usable(self) -> tuple[str, ...]:
        """The Pythons that its environment may be made of, in order of preference."""
        return (self.interpreter.python,) if self.interpreter else self.pythons

    @property
    def series(self) -> str:
        """Major and minor version: ``2.9``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def requirement(self) -> str:
        """What pip installs: ``science==2.9.0``."""
        return f"{self.package}=={self.version}"

    def home(self, path: str = "") -> str:
        """The link through which the environment is used: ``path``, or ``/opt/STEM-SERIES`` if that is empty."""
        return path or f"/opt/{self.stem}-{self.series}"

    def pins(self, python: str) -> Mapping[str, str]:
        """Canonical package name → version, as pinned for this Python."""
        return Recipe("", python, self.requirement, self.constraints.get(python, "")).pins

    def versions(self) -> Mapping[str, str]:
        """The package's version."""
        return {self.package: self.version}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """pip unpacks where jobs work."""
        return taken(self.title, f"{self.home()}/bin/python", self.percents)


@dataclass(frozen=True, slots=True)
class EnvironmentVariables:
    """Variables of a role that is one environment; version, Pythons, pins and wheelhouses are the stack's."""

    #: the link through which the environment is used: PATH/bin/python; empty: /opt/NAME-SERIES
    path: str = ""
    #: where pip takes wheels from: index (the one that the host's pip is set to) or mirror (this machine's files alone)
    wheels_from: Literal["index", "mirror"] = "index"


def environment_states(
    section: EnvironmentSection, stack: Stack, v: EnvironmentVariables, wheels: str = ""
) -> Iterator[Resource]:
    """The interpreter and the venv. ``wheels`` are hashes of wheels that the role knows, beside the stack's."""
    path, brought = section.home(v.path), section.interpreter
    if brought:
        archive, home = stack.artifact(brought.artifact), interpreter_home(brought.python)
        inside = Part(brought.inside, home, deep=True)
        yield ArchiveUnpacked(
            f"python{brought.python}", archive.file, archive, (inside,), scratch=f"{home}.hostwright-new"
        )
        if section.compiles:
            yield Debs(COMPILER)
    else:
        yield VenvPackage(section.pythons, compiles=section.compiles)
    recipes = (_recipe(section, stack, path, python) for python in section.usable)
    known, mirrored = f"{wheels}\n{section.wheels}", v.wheels_from == "mirror"
    yield Venv(path, tuple(replace(recipe, wheels=known, mirrored=mirrored) for recipe in recipes))


def _recipe(section: EnvironmentSection, stack: Stack, path: str, python: str) -> Recipe:
    wheelhouse = section.wheelhouses.get(python)
    return Recipe(
        name=path.rpartition("/")[2],
        python=python,
        requirement=section.requirement,
        constraints=section.constraints.get(python, ""),  # the rules refuse a stack without any
        wheelhouse=stack.artifact(wheelhouse) if wheelhouse else None,
        interpreter=f"{interpreter_home(python)}/bin/python{python}" if section.interpreter else "",
    )


def environment_values(
    section: EnvironmentSection, v: EnvironmentVariables, packages: Sequence[str]
) -> Iterator[AuditValue]:
    """What audits compare of it: its Python, its version, and these packages of those that come with it."""
    venv = section.home(v.path)
    python = VenvPython(venv)
    versions = {name: VenvVersion(venv, name.replace("-", "_")) for name in packages}  # as directories are named
    yield AuditValue("python", python, among=DISTRIBUTION)
    yield AuditValue(section.package, VenvVersion(venv, section.package), section.version)
    for series in section.constraints:
        pins = section.pins(series)
        for name, found in versions.items():
            yield AuditValue(name, found, pins.get(name), given=(python, series))
    for name, found in versions.items():  # also for a Python that is not in the stack, or is missing
        yield AuditValue(name, found, among=python)


def host_has_a_python(
    pythons: tuple[str, ...], section: EnvironmentSection, interpreters: tuple[str, ...] = ()
) -> Misfit | None:
    """The host has a Python that the stack supports, or the stack brings one. On a host without any Python, the role
    installs it."""
    usable = sorted(section.pythons, key=Version)
    if section.interpreter or set(usable) & set(pythons):
        return None
    have = f"the host has Python {', '.join(interpreters or pythons)} only"
    return Misfit(
        "host-python",
        f"{have}, and {section.title} {section.version} has wheels for {', '.join(usable)}",
        f"{section.stem}.pythons of the stack",
        f"Python {usable[-1]} installed beside it, a stack that brings one ({section.stem}.interpreter), "
        "or a distribution that has one of these",
    )


def pins_are_there(section: EnvironmentSection) -> Iterator[Misfit]:
    """Each Python has constraints that pin the package at the stack's version."""
    for python in section.usable:
        pinned = read_constraints(section.constraints.get(python, "")).plain
        if not any(_pins_it(line, section) for line in pinned.splitlines()):
            where = f"{section.stem}.constraints for Python {python}"
            yield Misfit(
                "constraints",
                f"{where} does not pin {section.requirement}",
                "pip, constraints files",
                f"`hostwright pins --requirement {section.requirement} --python {python}` writes it",
            )


def _pins_it(line: str, section: EnvironmentSection) -> bool:
    name, sign, version = line.partition("==")
    return bool(sign) and (canonicalize_name(name.strip()), version.strip()) == (section.package, section.version)


def wheels_run_on_the_c_library(distribution: str, version: str, section: EnvironmentSection) -> Misfit | None:
    """The distribution's glibc is as new as the pinned wheels need, for one of the Pythons at least."""
    have = GLIBC.get((distribution, version))
    needed = min((_glibc_needed(section.constraints.get(python, "")) for python in section.usable), default=(0, ""))
    if have is None or needed[0] <= have:
        return None
    return Misfit(
        "glibc",
        f"{needed[1]} needs glibc 2.{needed[0]}, and {distribution} {version} has 2.{have}",
        "PEP 600, the names of wheels",
        f"a distribution with glibc 2.{needed[0]} or newer",
    )


def _glibc_needed(constraints: str) -> tuple[int, str]:
    """The newest glibc 2.x that a wheel of the file needs, and the wheel."""
    wheels = listed_wheels(read_constraints(constraints).wheels)
    return max(((min(glibc_of(tag.platform) for tag in each.tags), each.file) for each in wheels), default=(0, ""))


#: Rules for each layer that is one environment, to be made of its section by ``on_section``.
ENVIRONMENT_RULES: tuple[Callable[..., Any], ...] = (host_has_a_python, wheels_run_on_the_c_library)


def on_section(role: str, rule: Callable[..., Any]) -> Rule:
    """A rule whose part ``section`` is the section of this role.

    >>> def has_a_version(section: EnvironmentSection) -> None: ...
    >>> from inspect import signature
    >>> list(signature(on_section("science", has_a_version)).parameters)
    ['science_section']
    """
    own = f"{role}_section"

    @wraps(rule)
    def on_own(**parts: Any) -> Any:
        return rule(**{("section" if name == own else name): value for name, value in parts.items()})

    parameters = [
        each.replace(name=own) if each.name == "section" else each for each in signature(rule).parameters.values()
    ]
    on_own.__signature__ = signature(rule).replace(parameters=parameters)  # type: ignore[attr-defined]
    return on_own
