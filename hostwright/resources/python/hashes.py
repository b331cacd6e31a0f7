"""Hashes of wheels: pip takes nothing but the bytes that were known when the pins were made (``--require-hashes``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename


def hashed(pins: Iterable[tuple[str, str]], wheels: str, python: str) -> str:
    r"""The pins as requirements with the hashes of every wheel that this Python can take; empty where one has none.

    ``wheels`` is text in the form of ``sha256sum``: a hash, two spaces, the name of a wheel.

    >>> print(hashed([("science", "2.9")], f"{'5' * 64}  science-2.9-py3-none-any.whl\n", "3.9").replace("5" * 64, "…"))
    science==2.9 --hash=sha256:…
    <BLANKLINE>
    >>> hashed([("science", "3.0")], f"{'5' * 64}  science-2.9-py3-none-any.whl\n", "3.9")
    ''
    """
    known = wheel_hashes(wheels, python)
    pins = tuple(pins)
    if not all(pin in known for pin in pins):
        return ""
    lines = (
        f"{name}=={version}{''.join(f' --hash=sha256:{digest}' for digest in known[name, version])}"
        for name, version in pins
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
