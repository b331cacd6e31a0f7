"""Hashes of wheels: pip takes nothing but the bytes that were known when the pins were made (``--require-hashes``)."""

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
    """A constraints file, taken apart."""

    plain: str  #: the same text without hashes: people give it to pip with packages that it does not pin
    hashes: Mapping[str, tuple[str, ...]]  #: canonical package name → the sha256 of its wheels
    wheels: str  #: the wheels that comments name, in the form of ``sha256sum``


@lru_cache(maxsize=64)  # a fleet shares a handful of files, and the facts of each host are held to them
def read_constraints(text: str) -> Constraints:
    r"""The hashes of a constraints file in pip's own form, as ``hostwright pins`` and ``pip-compile`` write it.

    A comment behind the hash names the wheel, without which the mirror cannot know it.

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
    r"""The pins as requirements with the hashes of every wheel that this Python can take; empty where one has none.

    ``wheels`` is text in the form of ``sha256sum``: a hash, two spaces, the name of a wheel. The hashes in ``own``, by
    package, go before it.

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


@lru_cache(maxsize=64)  # a fleet shares a handful of lists, and to parse one takes milliseconds
def wheel_hashes(wheels: str, python: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Package and version → the sha256 of its wheels that this Python can take."""
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    for wheel in listed_wheels(wheels):
        if any(_fits(tag, python) for tag in wheel.tags):
            known[wheel.pin] = (*known.get(wheel.pin, ()), wheel.sha256)
    return known


class ListedWheel(NamedTuple):
    """A wheel of a list: ``pin`` is its package and version."""

    sha256: str
    file: str
    pin: tuple[str, str]
    tags: frozenset[Tag]


def listed_wheels(wheels: str) -> Iterator[ListedWheel]:
    """The wheels in text in the form of ``sha256sum``; other lines are comments."""
    for line in wheels.splitlines():
        sha256, _, file = line.strip().partition("  ")
        try:
            name, version, _, tags = parse_wheel_filename(file)
        except InvalidWheelFilename:
            continue
        yield ListedWheel(sha256, file, (canonicalize_name(name), str(version)), tags)


def _fits(tag: Tag, python: str) -> bool:
    """Whether a wheel may be for this Python; pip knows exactly, and refuses what is not."""
    series = python.replace(".", "")
    return tag.interpreter in ("py3", f"py{series}", f"cp{series}") or tag.abi == "abi3"
