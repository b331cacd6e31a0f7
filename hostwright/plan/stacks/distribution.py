"""Finds the distribution packages that a host gets from the mirror, the package files on the controller. Pure
functions.

Every state that installs distribution packages lists these packages (``Resource.packages_for``), also a state that is a
field of another state. If one of a host's roles has ``packages_from: mirror``, all its roles use the mirror.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from hostwright.plan.host.hostfacts import OS_RELEASE, UNAME, os_release
from hostwright.plan.model import Condition, Facts, Resource
from hostwright.stack.stack import Artifact
from hostwright.stack.store.debs import MirroredDeb, PackageMirror

VARIABLE = "packages_from"  #: name of a variable that any role may have
MIRROR = "mirror"  #: value of ``packages_from`` that selects the mirror instead of the host's apt sources
_MACHINE = "x86_64"  #: machine type (``uname -m``) whose packages are mirrored
_MOST_CHARACTERS = 32  #: maximum number of characters in a distribution's ID, version or codename (our choice)

S = TypeVar("S")


def mirrored(variables: Mapping[str, Any]) -> bool:
    """Whether ``packages_from`` of any role is ``mirror``. ``variables`` maps roles to their variables."""
    return any(getattr(values, VARIABLE, "") == MIRROR for values in variables.values())


def distribution_of(facts: Facts) -> str:
    """The host's distribution as in lock files (``debian-12``); empty if it is unknown or not mirrored."""
    if OS_RELEASE not in facts or (UNAME in facts and facts[UNAME].strip().rpartition(" ")[2] not in {"", _MACHINE}):
        return ""
    release = os_release(facts)
    identity, version = release.get("ID", ""), release.get("VERSION_ID", "")
    return f"{identity}-{version}" if _is_plain(identity) and _is_plain(version.replace(".", "")) else ""


def codename_of(facts: Facts) -> str:
    """The codename of the host's distribution release (``bookworm``); empty if unknown."""
    name = os_release(facts).get("VERSION_CODENAME", "")
    return name if _is_plain(name) else ""


def _is_plain(word: str) -> bool:
    """Whether ``word``, a text from a host, is safe in a path and in an apt source list."""
    return word.isascii() and word.isalnum() and len(word) <= _MOST_CHARACTERS


def with_mirror(states: Iterable[S], mirror: PackageMirror) -> tuple[S, ...]:
    """Return ``states`` with ``mirror`` set in each state that installs packages, also in nested states."""
    return tuple(_changed(state, mirror) for state in states)


def _changed(value: Any, mirror: PackageMirror) -> Any:
    if isinstance(value, tuple):
        parts = tuple(_changed(part, mirror) for part in value)
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    if isinstance(value, Resource) and (taking := value.from_mirror(mirror)) is not value:
        return taking
    if not isinstance(value, Resource | Condition) or not is_dataclass(value):
        return value
    new = {field.name: _changed(getattr(value, field.name), mirror) for field in fields(value) if field.init}
    new = {name: part for name, part in new.items() if part is not getattr(value, name)}
    return replace(value, **new) if new else value


def packages_of(states: Iterable[object], facts: Facts | None) -> tuple[str, ...]:
    """Return the distribution packages that these states require on a host with these facts, each once, in order."""
    return tuple(dict.fromkeys(word for state in _all(states) for word in state.packages_for(facts)))


def archive_components(states: Iterable[object]) -> tuple[str, ...]:
    """Return the additional components of the distribution's archive that these states need."""
    return tuple(dict.fromkeys(name for state in _all(states) for name in state.archive_components()))


def local_repositories(states: Iterable[object]) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """Return the package files with repositories that these states unpack on the host, and the packages from them."""
    inside = tuple(_all(states))
    holders = {list_file: file for state in inside for list_file, file in state.repositories().items()}
    words = (word for state in inside for list_file in holders for word in state.packages_from(list_file))
    return tuple(dict.fromkeys(holders.values())), tuple(dict.fromkeys(words))


def _all(states: Iterable[object]) -> Iterator[Resource]:
    for value in states:
        if isinstance(value, Resource):
            yield value
        if isinstance(value, tuple):
            yield from _all(value)
        elif isinstance(value, Resource | Condition) and is_dataclass(value):
            yield from _all(getattr(value, field.name) for field in fields(value))


def package_files(states: Iterable[object], facts: Facts, mirror: PackageMirror) -> tuple[MirroredDeb, ...]:
    """Return the files of ``mirror`` that these states need on a host with these facts, with all dependencies."""
    chosen = tuple(states)
    return mirror.files_for(distribution_of(facts), (*packages_of(chosen, facts), *local_repositories(chosen)[1]))
