"""Base of roles whose layer is a Python environment: stack section, role variables, states and rules.

Such a role has a subclass of ``EnvironmentSection``, and a function that yields ``environment_states``.
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

#: distribution → minor version of the distribution's glibc 2.x
GLIBC = {
    ("debian", "10"): 28, ("debian", "11"): 31, ("debian", "12"): 36, ("debian", "13"): 41,
    ("ubuntu", "18.04"): 27, ("ubuntu", "20.04"): 31, ("ubuntu", "22.04"): 35, ("ubuntu", "24.04"): 39,
    ("ubuntu", "26.04"): 43,
}  # fmt: skip


class Interpreter(StackPart):
    """A self-contained CPython in an archive, with ``bin/pythonX.Y`` in the directory ``inside``."""

    python: PythonVersion
    artifact: Annotated[str, ArtifactName]
    inside: RelativePath = "python"


class EnvironmentSection(Section):
    """A package in a venv (stack section). Its Python is ``interpreter`` or the first of ``pythons`` that the host has.

    ``constraints`` maps Python versions to the text of a pip constraints file (in YAML: the name of a file beside the
    stack). ``wheelhouses`` maps Python versions to archives of wheels, for hosts without an index. ``wheels`` is a list
    of wheels with their sha256, in the format of ``sha256sum``. If the hashes of all pinned packages are known, pip
    installs only wheels with these hashes. ``libraries`` maps libraries of the host that the package loads at run time
    to the layers that install them.
    """

    title: ClassVar[str]  #: name of the package in messages, such as ``Science``
    package: ClassVar[str]  #: name of the package for pip, such as ``science``
    stem: ClassVar[str]  #: prefix of the names of this package's environments, such as ``science``
    compiles: ClassVar[bool] = False  #: whether the package compiles extensions at run time
    #: directory → percentage of the stack's ``free_bytes`` that the environment needs in this directory
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
        """Names of the layers of the stack that install the ``libraries``."""
        return tuple(dict.fromkeys(self.libraries.values()))

    @property
    def usable(self) -> tuple[str, ...]:
        """Python versions that the environment may use, in order of preference."""
        return (self.interpreter.python,) if self.interpreter else self.pythons

    @property
    def series(self) -> str:
        """Major and minor version of the package: ``2.9``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def requirement(self) -> str:
        """Requirement for pip: ``science==2.9.0``."""
        return f"{self.package}=={self.version}"

    def home(self, path: str = "") -> str:
        """Path of the link to the environment: ``path``, or ``/opt/STEM-SERIES`` if ``path`` is empty."""
        return path or f"/opt/{self.stem}-{self.series}"

    def pins(self, python: str) -> Mapping[str, str]:
        """Canonical name → pinned version of each package, for the Python version ``python``."""
        return Recipe("", python, self.requirement, self.constraints.get(python, "")).pins

    def versions(self) -> Mapping[str, str]:
        return {self.package: self.version}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """Shares of disk space for the environment, and for the work directory in which pip unpacks."""
        return taken(self.title, f"{self.home()}/bin/python", self.percents)


@dataclass(frozen=True, slots=True)
class EnvironmentVariables:
    """Role variables for a Python environment; the stack sets the versions, pins and wheelhouses."""

    #: path of the link to the environment, so that users run PATH/bin/python (default: /opt/NAME-SERIES)
    path: str = ""
    #: source of pip's wheels: index (of the host's pip settings) or mirror (only files from this machine)
    wheels_from: Literal["index", "mirror"] = "index"


def environment_states(
    section: EnvironmentSection, stack: Stack, v: EnvironmentVariables, wheels: str = ""
) -> Iterator[Resource]:
    """States of the section's interpreter and venv. ``wheels`` is the role's list of wheels, in addition to the stack's
    list.
    """
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
        # a Python version without constraints occurs only in a stack that ``pins_are_there`` refuses
        constraints=section.constraints.get(python, ""),
        wheelhouse=stack.artifact(wheelhouse) if wheelhouse else None,
        interpreter=f"{interpreter_home(python)}/bin/python{python}" if section.interpreter else "",
    )


def environment_values(
    section: EnvironmentSection, v: EnvironmentVariables, packages: Sequence[str]
) -> Iterator[AuditValue]:
    """Values for audits: the environment's Python, and the versions of the main package and of ``packages``."""
    venv = section.home(v.path)
    python = VenvPython(venv)
    # names of dist-info directories have underscores in place of hyphens
    versions = {name: VenvVersion(venv, name.replace("-", "_")) for name in packages}
    yield AuditValue("python", python, among=DISTRIBUTION)
    yield AuditValue(section.package, VenvVersion(venv, section.package), section.version)
    for series in section.constraints:
        pins = section.pins(series)
        for name, found in versions.items():
            yield AuditValue(name, found, pins.get(name), given=(python, series))
    for name, found in versions.items():  # hosts with a Python outside the constraints are compared with each other
        yield AuditValue(name, found, among=python)


def host_has_a_python(
    pythons: tuple[str, ...], section: EnvironmentSection, interpreters: tuple[str, ...] = ()
) -> Misfit | None:
    """The host has a Python that the stack supports, or no Python (the role installs one), or the stack has its own."""
    usable = sorted(section.pythons, key=Version)
    if section.interpreter or set(usable) & set(pythons):
        return None
    have = f"the host has only Python {', '.join(interpreters or pythons)}"
    return Misfit(
        "host-python",
        f"{have}, but {section.title} {section.version} has wheels only for {', '.join(usable)}",
        f"{section.stem}.pythons of the stack",
        f"Python {usable[-1]} in addition, a stack with an interpreter ({section.stem}.interpreter), or a distribution "
        "with one of these versions",
    )


def pins_are_there(section: EnvironmentSection) -> Iterator[Misfit]:
    """For each Python version of the stack, constraints pin the package at the stack's version."""
    for python in section.usable:
        pinned = read_constraints(section.constraints.get(python, "")).plain
        if not any(_pins_it(line, section) for line in pinned.splitlines()):
            where = f"{section.stem}.constraints for Python {python}"
            yield Misfit(
                "constraints",
                f"{where} does not pin {section.requirement}",
                "pip, constraints files",
                f"the output of `hostwright pins --requirement {section.requirement} --python {python}`",
            )


def _pins_it(line: str, section: EnvironmentSection) -> bool:
    name, sign, version = line.partition("==")
    return bool(sign) and (canonicalize_name(name.strip()), version.strip()) == (section.package, section.version)


def wheels_run_on_the_c_library(distribution: str, version: str, section: EnvironmentSection) -> Misfit | None:
    """The distribution's glibc is new enough for the pinned wheels of at least one Python."""
    have = GLIBC.get((distribution, version))
    needed = min((_glibc_needed(section.constraints.get(python, "")) for python in section.usable), default=(0, ""))
    if have is None or needed[0] <= have:
        return None
    return Misfit(
        "glibc",
        f"{needed[1]} needs glibc 2.{needed[0]}, but {distribution} {version} has glibc 2.{have}",
        "PEP 600, the names of wheels",
        f"a distribution with glibc 2.{needed[0]} or newer",
    )


def _glibc_needed(constraints: str) -> tuple[int, str]:
    """Highest minor version of glibc 2.x that a wheel in the constraints needs, and the name of that wheel."""
    wheels = listed_wheels(read_constraints(constraints).wheels)
    return max(((min(glibc_of(tag.platform) for tag in each.tags), each.file) for each in wheels), default=(0, ""))


#: rules for every Python environment, to be bound to the section of one role by ``on_section``
ENVIRONMENT_RULES: tuple[Callable[..., Any], ...] = (host_has_a_python, wheels_run_on_the_c_library)


def on_section(role: str, rule: Callable[..., Any]) -> Rule:
    """Bind the parameter ``section`` of a rule to the section of the role ``role``.

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
