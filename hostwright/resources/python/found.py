"""Search for a host's Python environments with a layer's package, made by any person with any tool."""

from __future__ import annotations

from collections.abc import Sequence

from hostwright.plan.roles.found import OTHER, Adopted, Finder, FoundValues, OnHost, PythonPackage, distance
from hostwright.resources.python.environments import EnvironmentSection


def environment_finder(*names: str) -> Finder:
    """Finder of Python environments with one of the packages ``names`` (names in pip and in conda)."""
    return Finder(_values, packages=names, adopted=_adopted)


def _values(host: OnHost) -> FoundValues:
    for package in _each(host.packages):
        python = f", Python {package.python}" if package.python else ""
        yield package.environment, f"{package.name} {package.version}{python}{', conda' if package.conda else ''}"


def _each(packages: Sequence[PythonPackage]) -> tuple[PythonPackage, ...]:
    found: dict[str, PythonPackage] = {}
    for package in sorted(packages, key=lambda one: (one.environment, one.conda, one.name)):
        found.setdefault(package.environment, package)
    return tuple(found.values())


def _adopted(host: OnHost, section: EnvironmentSection) -> Adopted:
    found = [(one.version.partition("+")[0], one.environment) for one in _each(host.packages)]
    if not found:
        return Adopted(
            left_out=f"the host has no environment with {section.title} outside home directories", unlike=OTHER
        )
    there = ", ".join(f"{version} in {place}" for version, place in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    made = f"to install {section.home()} in addition, add the role to roles"
    far = min(distance(version, section.version) for version, _ in found)
    return Adopted(left_out=f"{there}{more} is left unchanged; {made}", unlike=far)
