"""The environments of a host that have a layer's package, whoever made them: venvs, conda's, a user's, the system's."""

from __future__ import annotations

from collections.abc import Sequence

from hostwright.plan.roles.found import OTHER, Adopted, Finder, FoundValues, OnHost, PythonPackage, distance
from hostwright.resources.python.environments import EnvironmentSection


def environment_finder(*names: str) -> Finder:
    """The finder of a layer that is a Python environment: ``names`` are the package's, as pip and as conda call it."""
    return Finder(_values, packages=names, adopted=_adopted)


def _values(host: OnHost) -> FoundValues:
    for package in _each(host.packages):
        python = f", Python {package.python}" if package.python else ""
        yield package.environment, f"{package.name} {package.version}{python}{', conda' if package.conda else ''}"


def _each(packages: Sequence[PythonPackage]) -> tuple[PythonPackage, ...]:
    """One package of each environment; pip's metadata win over conda's, which has another name for the same."""
    found: dict[str, PythonPackage] = {}
    for package in sorted(packages, key=lambda one: (one.environment, one.conda, one.name)):
        found.setdefault(package.environment, package)
    return tuple(found.values())


def _adopted(host: OnHost, section: EnvironmentSection) -> Adopted:
    """No environment of somebody else's is adopted: the role makes its own, in another directory."""
    found = [(one.version.partition("+")[0], one.environment) for one in _each(host.packages)]
    if not found:
        return Adopted(left_out=f"the host has no environment with {section.title} outside of homes", unlike=OTHER)
    there = ", ".join(f"{version} in {place}" for version, place in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    made = f"the role would make {section.home()} beside it: name it in roles to have that"
    far = min(distance(version, section.version) for version, _ in found)
    return Adopted(left_out=f"{there}{more} stays as it is; {made}", unlike=far)
