"""Hashes of wheels, recorded with the pins. pip then installs only files with these hashes (``--require-hashes``)."""

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

    plain: str  #: text of the file without hashes, for ``pip install -c``
    hashes: Mapping[str, tuple[str, ...]]  #: canonical name of a package → sha256 of each wheel of this package
    wheels: str  #: wheels named in comments of the file, in the format of ``sha256sum``


@lru_cache(maxsize=64)  # many hosts share the same few constraints files
def read_constraints(text: str) -> Constraints:
    r"""Parse a constraints file with hashes, as ``hostwright pins`` and ``pip-compile`` write it.

    A comment after a hash contains the name of the wheel. The mirror needs this name.

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
    r"""Requirements for the pins, with the hashes of all wheels that fit this Python; empty if a pin lacks such a
    wheel.

    ``wheels`` is in the format of ``sha256sum``. ``own`` maps packages to hashes that replace the hashes from
    ``wheels``.

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


@lru_cache(maxsize=64)  # parsing a list of wheels takes milliseconds, and many hosts share a list
def wheel_hashes(wheels: str, python: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Package and version → sha256 of each wheel of the package in ``wheels`` that fits ``python``."""
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    for wheel in listed_wheels(wheels):
        if any(_fits(tag, python) for tag in wheel.tags):
            known[wheel.pin] = (*known.get(wheel.pin, ()), wheel.sha256)
    return known


class ListedWheel(NamedTuple):
    """A wheel in a list with hashes; ``pin`` is its package and version."""

    sha256: str
    file: str
    pin: tuple[str, str]
    tags: frozenset[Tag]


def listed_wheels(wheels: str) -> Iterator[ListedWheel]:
    """Parse ``wheels``, a text in the format of ``sha256sum``. Lines for other files are ignored."""
    for line in wheels.splitlines():
        sha256, _, file = line.strip().partition("  ")
        try:
            name, version, _, tags = parse_wheel_filename(file)
        except InvalidWheelFilename:
            continue
        yield ListedWheel(sha256, file, (canonicalize_name(name), str(version)), tags)


def _fits(tag: Tag, python: str) -> bool:
    series = python.replace(".", "")
    return tag.interpreter in ("py3", f"py{series}", f"cp{series}") or tag.abi == "abi3"
