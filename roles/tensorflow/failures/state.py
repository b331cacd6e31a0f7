"""Python environments on a host: the one at the stack's path, and all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from hostwright.failures import LOOK_S, Unread, homes_probe, wanted
from hostwright.resources import Dist, Drift, FoundVenv, Probe, Recipe, Venv, find_drifts, parse_audit
from hostwright.roles import sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: probe that prints the packages of all virtual environments in /opt
VENVS = Probe(sh_file(__file__, "venvs.sh"), cap_bytes=256 * 1024)

#: probe that prints releases of TensorFlow and related packages outside virtual environments
OUTSIDE = homes_probe(sh_file(__file__, "outside.sh"))


@dataclass(frozen=True, slots=True)
class Used:
    """Python environment at the stack's path. ``dists``: canonical package name → version.

    ``recipe`` and ``found`` are ``None`` for an environment that Hostwright did not build.
    """

    home: str
    python: str
    dists: Mapping[str, str] = field(default_factory=dict)
    recipe: Recipe | None = None
    found: FoundVenv | None = None

    @property
    def drifts(self) -> list[Drift]:
        return find_drifts(self.recipe.pins, self.found) if self.recipe and self.found else []


def used(ctx: AuditContext) -> Used | None:
    """Return the environment at the stack's path; ``None`` if missing. Raises ``Unread`` if the list is incomplete."""
    venv = wanted(ctx, "tensorflow", Venv)
    answer = ctx.answer(venv.probes()[1])
    if answer.truncated:
        raise Unread("the Python environment has too many packages to list")
    audit = parse_audit(answer.text)
    for recipe in venv.recipes:
        if recipe.home == audit.link and recipe.home in audit.homes:
            on_host = audit.homes[recipe.home]
            return Used(
                recipe.home, recipe.python, {_name(dist): dist.version for dist in on_host.dists}, recipe, on_host
            )
    return _by_hand(ctx, venv.path)


def _by_hand(ctx: AuditContext, path: str) -> Used | None:
    if PurePosixPath(path).parent != PurePosixPath("/opt"):
        raise Unread(f"Hostwright checks only environments in /opt, but this environment is {path}")
    answer = ctx.answer(VENVS)
    if not answer.ok or answer.truncated:
        raise Unread("the environments in /opt could not be listed")
    rows = [row for line in answer.text.splitlines() if len(row := line.split("\t")) == 3 and row[0] == path]
    dists = (Dist(row[2], recorded=True) for row in rows)
    return Used(path, rows[0][1], {_name(dist): dist.version for dist in dists}) if rows else None


def outside(ctx: AuditContext) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each directory outside a venv that contains a TensorFlow, with package name → version.

    Raises ``Unread`` if the home directories were not read.
    """
    answer = ctx.answer(OUTSIDE)
    if not answer.ok:
        raise Unread(
            f"the home directories did not respond within {LOOK_S} s"
            if answer.status in {124, 137}
            else "the home directories are not readable"
        )
    places: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in (line.split("\t") for line in answer.text.splitlines()):
        if len(row) == 2 and row[0].startswith("/"):
            dist = Dist(row[1], recorded=True)
            places[row[0]][_name(dist)] = dist.version
    yield from places.items()


def _name(dist: Dist) -> str:
    return canonicalize_name(dist.name)


def major(version: str) -> int | None:
    """Return the major version of a package's ``version``; ``None`` if invalid."""
    try:
        return Version(version).major
    except InvalidVersion:
        return None
