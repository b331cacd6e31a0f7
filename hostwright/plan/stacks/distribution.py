"""Packages of a host's distribution that come from the mirror, where a variable of a role says so. Pure data.

Every state that installs such packages names them (``TakesPackages``), also one inside of another state. Where one of a
host's roles has ``packages_from: mirror``, all of them get the mirror's packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from hostwright.plan.host.hostfacts import OS_RELEASE, UNAME, os_release
from hostwright.plan.model import Facts
from hostwright.stack.stack import Artifact
from hostwright.stack.store.debs import MirroredDeb, PackageMirror

VARIABLE = "packages_from"  #: of any role
MIRROR = "mirror"  #: its value where the host's own sources are not asked
_MACHINE = "x86_64"  #: of the only architecture that is mirrored
_MOST_CHARACTERS = 32  #: our choice, of a part of a release's name

S = TypeVar("S")


@runtime_checkable
class TakesPackages(Protocol):
    """A state that installs packages of the host's distribution."""

    def packages_for(self, facts: Facts | None, /) -> tuple[str, ...]:
        """Those that a host with these facts has then, ``name`` or ``name=version``, whether they are there or not;
        where nothing is known of it, those that every host has."""
        ...

    def from_mirror(self, mirror: PackageMirror, /) -> Self:
        """The same state, which takes them from there."""
        ...


@runtime_checkable
class HoldsRepository(Protocol):
    """A state that puts a repository on the host's own disk."""

    @property
    def artifact(self) -> Artifact:
        """The package file."""
        ...

    @property
    def list_file(self) -> str:
        """The path of the source list."""
        ...


@runtime_checkable
class TakesFromSource(Protocol):
    """A state that installs packages from one source list."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Their names, or ``name=version``."""
        ...

    @property
    def source(self) -> str:
        """The path of the source list; empty for all of the host's."""
        ...


def mirrored(variables: Mapping[str, Any]) -> bool:
    """Whether packages come from the mirror: one of the host's roles says so, by its variables."""
    return any(getattr(values, VARIABLE, "") == MIRROR for values in variables.values())


def distribution_of(facts: Facts) -> str:
    """The host's distribution as lock files name it (``debian-12``); empty where it is not known, or where the host is
    of an architecture that is not mirrored."""
    if OS_RELEASE not in facts or (UNAME in facts and facts[UNAME].strip().rpartition(" ")[2] not in {"", _MACHINE}):
        return ""
    release = os_release(facts)
    identity, version = release.get("ID", ""), release.get("VERSION_ID", "")
    return f"{identity}-{version}" if _is_plain(identity) and _is_plain(version.replace(".", "")) else ""


def codename_of(facts: Facts) -> str:
    """The name of the host's release in the archive (``bookworm``); empty where it says none."""
    name = os_release(facts).get("VERSION_CODENAME", "")
    return name if _is_plain(name) else ""


def _is_plain(word: str) -> bool:
    """Whether it may stand in a path and in a list of sources: it is what a host says of itself."""
    return word.isascii() and word.isalnum() and len(word) <= _MOST_CHARACTERS


def with_mirror(states: Iterable[S], mirror: PackageMirror) -> tuple[S, ...]:
    """These states; those that install packages, also inside of others, take them from the mirror."""
    return tuple(_changed(state, mirror) for state in states)


def _changed(value: Any, mirror: PackageMirror) -> Any:
    if isinstance(value, TakesPackages):
        return value.from_mirror(mirror)
    if isinstance(value, tuple):
        parts = tuple(_changed(part, mirror) for part in value)
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    if not _is_state(value):
        return value
    new = {field.name: _changed(getattr(value, field.name), mirror) for field in fields(value) if field.init}
    new = {name: part for name, part in new.items() if part is not getattr(value, name)}
    return replace(value, **new) if new else value


def _is_state(value: object) -> bool:
    """Whether other states may be inside: a state, or a condition of one."""
    return is_dataclass(value) and not isinstance(value, type) and hasattr(value, "probes")


def packages_of(states: Iterable[object], facts: Facts | None) -> tuple[str, ...]:
    """The packages that a host with these facts takes of its distribution, each once, in their order."""
    return tuple(
        dict.fromkeys(word for state in states for taker in _takers(state) for word in taker.packages_for(facts))
    )


def local_repositories(states: Iterable[object]) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """The repositories that these states put on the host's own disk, and the packages that others of them take from
    there. What those need of the distribution comes from the mirror as well."""
    inside = [part for state in states for part in _inside(state)]
    holders = {state.list_file: state.artifact for state in inside if isinstance(state, HoldsRepository)}
    takers = (state for state in inside if isinstance(state, TakesFromSource) and state.source in holders)
    return tuple(dict.fromkeys(holders.values())), tuple(
        dict.fromkeys(word for each in takers for word in each.packages)
    )


def _takers(value: object) -> Iterator[TakesPackages]:
    return (part for part in _inside(value) if isinstance(part, TakesPackages))


def _inside(value: object) -> Iterator[object]:
    """A state and those inside of it."""
    if isinstance(value, tuple):
        for part in value:
            yield from _inside(part)
    elif _is_state(value):
        yield value
        for field in fields(value):  # type: ignore[arg-type]  # _is_state
            yield from _inside(getattr(value, field.name))


def package_files(states: Iterable[object], facts: Facts, mirror: PackageMirror) -> tuple[MirroredDeb, ...]:
    """The files that these states take on a host with these facts, with all that they may need."""
    chosen = tuple(states)
    return mirror.files_for(distribution_of(facts), (*packages_of(chosen, facts), *local_repositories(chosen)[1]))
