"""What a venv is built from: a Python, what is installed in it, and the pins of everything that comes with it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.python.hashes import hashed
from hostwright.resources.python.users_files import HOMES
from hostwright.stack.stack import Artifact


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a venv is built from. Where the wheels come from is no part of its key: the pins say what they are."""

    name: str  #: with which the names of its venvs begin: ``science-2.9``
    python: str  #: the version of Python: ``3.9``
    requirement: str  #: what is installed, with its version: ``science==2.9.0``
    constraints: str  #: the text of pip's constraints file; every pin in it is installed
    wheelhouse: Artifact | None = None  #: a tar of wheels; without it pip uses the host's own index
    interpreter: str = ""  #: the path of a Python that another state brings; without it the host's own is used
    wheels: str = field(
        default="", repr=False, metadata=NO_IDENTITY
    )  #: the hashes of wheels, as ``sha256sum`` writes them

    @property
    def home(self) -> str:
        """The directory of the venv."""
        brought = [self.interpreter] if self.interpreter else []
        text = "\0".join([self.python, self.requirement, self.constraints, *brought])
        return f"{HOMES}/{self.name}-py{self.python}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def pins(self) -> dict[str, str]:
        """Canonical package name → version, for every ``==`` whose marker holds on this Python."""
        return dict(_pins(f"{self.constraints}\n{self.requirement}", self.python))

    def hashed(self, *names: str) -> str:
        """These pins, or all, with the hashes of their wheels for pip; empty where a wheel's is not known."""
        pins = self.pins
        return hashed(((name, pins[name]) for name in names or pins), self.wheels, self.python)


@lru_cache(maxsize=64)  # a fleet shares a handful of constraints, and to parse one takes a millisecond
def _pins(lines: str, python: str) -> Mapping[str, str]:
    where = {"python_version": python, "python_full_version": f"{python}.0"}
    pins: dict[str, str] = {}
    for line in lines.splitlines():
        try:
            row = Requirement(line.partition("#")[0])
        except InvalidRequirement:  # a comment, an option, or a mistake that pip will name
            continue
        exact = [part.version for part in row.specifier if part.operator == "=="]
        if exact and (row.marker is None or row.marker.evaluate(where)):
            pins[canonicalize_name(row.name)] = exact[0]
    return pins
