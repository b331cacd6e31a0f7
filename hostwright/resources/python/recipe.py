"""The recipe of a venv: its Python, its requirement, and the pins of all dependencies."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.python.hashes import hashed, read_constraints
from hostwright.resources.python.users_files import HOMES
from hostwright.resources.python.wheels import Wheel, choose_wheels
from hostwright.stack.stack import Artifact

#: version of the oldest usable pip, the first with the tags of PEP 600. ``PIP_VERSION`` is the last pip for Python 3.7.
PIP_MINIMUM = (20, 3)
PIP_VERSION = "24.0"
PIP_SHA256 = "ba0d021a166865d2265246961bec0152ff124de910c5cc39f1156ce3fa7c69dc"
PIP_WHEEL = f"{PIP_SHA256}  pip-{PIP_VERSION}-py3-none-any.whl"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Python, requirement and pins of a venv. The key in the venv's path is a hash of all three."""

    name: str  #: prefix of the names of the recipe's venvs, such as ``science-2.9``
    python: str  #: version of Python, such as ``3.9``
    requirement: str  #: pip requirement with an exact version, such as ``science==2.9.0``
    constraints: str  #: text of a pip constraints file, with or without hashes. Every pinned package is installed.
    #: tar archive that contains the wheels; default: pip downloads wheels from the host's index
    wheelhouse: Artifact | None = None
    interpreter: str = ""  #: path of a Python that another state installs; default: a Python of the distribution
    #: names of wheels, each with the sha256 of the wheel, in the format of ``sha256sum``
    wheels: str = field(default="", repr=False, metadata=NO_IDENTITY)

    #: whether wheels come from the mirror on this machine instead of a ``wheelhouse``
    mirrored: bool = field(default=False, metadata=NO_IDENTITY)

    @property
    def plain(self) -> str:
        return read_constraints(self.constraints).plain

    @property
    def listed(self) -> str:
        """All wheels with a known name and hash, in the format of ``sha256sum``."""
        return f"{PIP_WHEEL}\n{self.wheels}\n{read_constraints(self.constraints).wheels}"

    @property
    def home(self) -> str:
        """Path of the venv."""
        brought = [self.interpreter] if self.interpreter else []
        text = "\0".join([self.python, self.requirement, self.plain, *brought])
        return f"{HOMES}/{self.name}-py{self.python}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def pins(self) -> dict[str, str]:
        """Canonical package name → version, for every pin with ``==`` that applies to this Python."""
        return dict(_pins(f"{self.plain}\n{self.requirement}", self.python))

    def hashed(self, *names: str) -> str:
        """Requirements with hashes for the packages ``names`` (default: all); empty if any hash is unknown."""
        pins = self.pins
        own = read_constraints(self.constraints).hashes
        return hashed(((name, pins[name]) for name in names or pins), self.listed, self.python, own)

    def from_mirror(self, *names: str) -> tuple[Wheel, ...]:
        """Wheels in ``listed`` to fetch from the mirror for the packages ``names`` (default: all pins and pip).

        Empty if the recipe does not use the mirror.
        """
        if not self.mirrored or self.wheelhouse:
            return ()
        wanted = {canonicalize_name(name) for name in names}
        pins = [pin for pin in (*self.pins.items(), ("pip", PIP_VERSION)) if not names or pin[0] in wanted]
        return choose_wheels(dict.fromkeys(pins), self.listed, self.python)

    @property
    def unlisted(self) -> tuple[str, ...]:
        """Pins that the mirror cannot serve, because ``listed`` has no wheel of the package for the recipe's Python."""
        if not self.mirrored or self.wheelhouse:
            return ()
        listed = {wheel.package for wheel in self.from_mirror()}
        return tuple(f"{name} {version}" for name, version in self.pins.items() if name not in listed)


@lru_cache(maxsize=64)  # parsing a constraints file takes a millisecond, and many hosts share a file
def _pins(lines: str, python: str) -> Mapping[str, str]:
    where = {"python_version": python, "python_full_version": f"{python}.0"}
    pins: dict[str, str] = {}
    for line in lines.splitlines():
        try:
            row = Requirement(line.partition("#")[0])
        except InvalidRequirement:  # the line is a comment, an option, or an error that pip will report
            continue
        exact = [part.version for part in row.specifier if part.operator == "=="]
        if exact and (row.marker is None or row.marker.evaluate(where)):
            pins[canonicalize_name(row.name)] = exact[0]
    return pins
