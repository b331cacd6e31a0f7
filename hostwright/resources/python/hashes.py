"""Hashes of wheels: pip installs only files with the hashes that were recorded with the pins (``--require-hashes``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from hostwright.common.untrusted import Pattern

_HASH = Pattern(r"--hash=sha256:([0-9a-f]{64})")


class Constraints(NamedTuple):
    """A parsed constraints file."""

    plain: str  #: the text without hashes, for people who install unpinned packages with it
    hashes: Mapping[str, tuple[str, ...]]  #: canonical package name → the sha256 of its wheels
    wheels: str  #: the wheels in comments, in the format of ``sha256sum``


@lru_cache(maxsize=64)  # a fleet shares few files, and each host's facts are compared with them
def read_constraints(text: str) -> Constraints:
    r"""Parse a constraints file with hashes in pip's format, as ``hostwright pins`` and ``pip-compile`` write it.

    A comment after the hash names the wheel; the mirror cannot find a wheel without its name.

    >>> text = f"science==2.9 --hash=sha256:{'5' * 64}  # science-2.9-py3-none-any.whl\n"
    >>> read_constraints(text).plain, read_constraints(text).wheels.replace("5" * 64, "…")
    ('science==2.9\n', '…  science-2.9-py3-none-any.whl\n')
    """
    if "--hash=" not in text:
        return Constraints(text, {}, "")
    plain: list[str] = []
    wheels: list[str] = []
    hashes: dict[str, tuple[str, ...]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        pin, found, _ = line.partition(" --hash=")
        plain.append(pin.rstrip())
        if found:
            known, _, files = line.partition("#")
            digests = tuple(match[1] for match in _HASH.finditer(known))
            hashes[canonicalize_name(pin.partition("==")[0].strip())] = digests
            wheels += map("  ".join, zip(digests, files.split(), strict=False))
    return Constraints("".join(f"{line}\n" for line in plain), hashes, "".join(f"{line}\n" for line in wheels))


def hashed(
    pins: Iterable[tuple[str, str]], wheels: str, python: str, own: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> str:
    r"""Pins as requirements, with the hashes of every wheel that fits this Python; empty if a pin has no such wheel.

    ``wheels`` is text in the format of ``sha256sum``: a hash, two spaces, the name of a wheel. Hashes in ``own``, by
    package, take precedence.

    >>> print(hashed([("science", "2.9")], f"{'5' * 64}  science-2.9-py3-none-any.whl\n", "3.9").replace("5" * 64, "…"))
    science==2.9 --hash=sha256:…
    <BLANKLINE>
    >>> hashed([("science", "3.0")], f"{'5' * 64}  science-2.9-py3-none-any.whl\n", "3.9")
    ''
    """
    known = wheel_hashes(wheels, python)
    taken = {pin: own.get(pin[0]) or known.get(pin, ()) for pin in pins}
    if not all(taken.values()):
        return ""
    lines = (
        f"{name}=={version}{''.join(f' --hash=sha256:{digest}' for digest in digests)}"
        for (name, version), digests in taken.items()
    )
    return "".join(f"{line}\n" for line in lines)


@lru_cache(maxsize=64)  # a fleet shares few lists, and parsing one takes milliseconds
def wheel_hashes(wheels: str, python: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Package and version → sha256 of its wheels that fit this Python."""
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    for wheel in listed_wheels(wheels):
        if any(_fits(tag, python) for tag in wheel.tags):
            known[wheel.pin] = (*known.get(wheel.pin, ()), wheel.sha256)
    return known


class ListedWheel(NamedTuple):
    """A wheel in a list; ``pin`` is its package and version."""

    sha256: str
    file: str
    pin: tuple[str, str]
    tags: frozenset[Tag]


def listed_wheels(wheels: str) -> Iterator[ListedWheel]:
    """Wheels in text in the format of ``sha256sum``; other lines are ignored."""
    for line in wheels.splitlines():
        sha256, _, file = line.strip().partition("  ")
        try:
            name, version, _, tags = parse_wheel_filename(file)
        except InvalidWheelFilename:
            continue
        yield ListedWheel(sha256, file, (canonicalize_name(name), str(version)), tags)


def _fits(tag: Tag, python: str) -> bool:
    """Whether a wheel may fit this Python; pip checks exactly, and refuses other wheels."""
    series = python.replace(".", "")
    return tag.interpreter in ("py3", f"py{series}", f"cp{series}") or tag.abi == "abi3"
