"""Reads security bulletins in CSAF 2.0, as makers publish them, from a directory that an operator fetched.

A bulletin counts with the versions that it calls fixed: each is a floor of its series. The directory may be anybody's:
its files are capped, read strictly, and nothing in them is more than a name or a number (docs.oasis-open.org/csaf).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.text import printable
from hostwright.common.untrusted import json_object
from hostwright.stack.ages import Advisories, Floor, Product, numbers

MAX_FILES = 20_000  #: of a directory and those below it; ten years of one maker's bulletins are 8,000
MAX_BYTES = 4 * 1024 * 1024  #: of a file; the largest that was read has 0.6 MB
MAX_PRODUCTS = 20_000  #: of a bulletin
MAX_DEPTH = 12  #: of its product tree; real ones have 4

_DAY = re.compile(r"(20[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))(?:T[0-9:.Z+-]{1,32})?")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,79}")
_CVE = re.compile(r"CVE-[0-9]{4}-[0-9]{4,9}")
_VERSION = re.compile(r"[vV]?([0-9]{1,9}(?:\.[0-9]{1,9}){1,7})")
_SERIES = re.compile(r"[^()]{1,80}\(R([0-9]{1,5})\)")
_WINDOWS = re.compile(r"(?i)windows|vgpu|cloud gaming|virtual gpu")  #: platforms that no host of ours is


@dataclass(frozen=True, slots=True)
class Read:
    """What a directory of bulletins holds: floors by product, how many bulletins were read, and files that are none."""

    advisories: Advisories
    bulletins: int
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Version:
    """A product's version in the tree of a bulletin."""

    product: str
    version: str
    series: str | None
    platform: str


def read_bulletins(folder: Path, known: Advisories) -> Read:
    """The floors in all bulletins (``*.json``) below a directory, of the products that ``known`` has names for.

    Raises ``InputError`` for a directory that cannot be read, or without any bulletin.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no directory; name one with bulletins in CSAF", "--advisories")
    names = {name: product for product, each in known.products.items() for name in each.bulletins}
    floors: dict[str, dict[Floor, None]] = {}
    skipped, count, newest = list[str](), 0, date.min
    for path in _files(folder):
        document = _document(path)
        if document is None or not _is_bulletin(document):
            skipped.append(printable(str(path.relative_to(folder))))
            continue
        count += 1
        for product, floor in floors_of(document, names):
            floors.setdefault(product, {})[floor] = None
            newest = max(newest, date.fromisoformat(floor.published))
    if not count:
        raise InputError(f"{folder} has no security bulletin in CSAF 2.0 (JSON)", "--advisories")
    products = {name: Product(floors=tuple(each)) for name, each in sorted(floors.items())}
    return Read(Advisories(date=newest, products=products), count, tuple(skipped))


def _files(folder: Path) -> Iterator[Path]:
    """The JSON files below a directory, no link followed. Raises ``InputError``."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += (Path(place, name) for name in files if name.endswith(".json"))
        if len(found) > MAX_FILES:
            raise InputError(f"{folder} holds more than {MAX_FILES} files; name a smaller directory", "--advisories")
    yield from sorted(found)


def _unreadable(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be read: {error.strerror}", "--advisories") from error


def _document(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; ``None`` for what is no ordinary file, too large, or anything else."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - flags
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            text = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    if len(text) > MAX_BYTES:
        return None
    try:
        return json_object(text.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _is_bulletin(document: Mapping[str, Any]) -> bool:
    head = _mapping(document.get("document"))
    return head.get("csaf_version") == "2.0" and head.get("category") == "csaf_security_advisory"


def floors_of(document: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[tuple[str, Floor]]:
    """The floors that one bulletin sets, by our name of the product. ``names`` are those of bulletins."""
    tracking = _mapping(_mapping(document.get("document")).get("tracking"))
    day, number = _whole(_DAY, tracking.get("current_release_date")), _whole(_ID, tracking.get("id"))
    if not day or not number or tracking.get("status") not in {"final", "interim"}:
        return
    by_id = dict(islice(_versions(_mapping(document.get("product_tree"))), MAX_PRODUCTS))
    fixed: dict[str, dict[str, None]] = {}
    for entry in _list(document.get("vulnerabilities")):
        vulnerability = _mapping(entry)
        cve = _whole(_CVE, vulnerability.get("cve"))
        for key in _list(_mapping(vulnerability.get("product_status")).get("fixed")):
            if isinstance(key, str) and key in by_id:
                fixed.setdefault(key, {}).update({cve: None} if cve else {})
    rows: dict[tuple[str, str, str | None], dict[str, None]] = {}
    for key, cves in fixed.items():
        one = by_id[key]
        if one.product in names and not _WINDOWS.search(one.platform):
            rows.setdefault((names[one.product], one.version, one.series), {}).update(cves)
    for (product, version, series), cves in rows.items():
        yield product, Floor(version=version, series=series, published=day, bulletin=number, cves=tuple(cves))


def _versions(tree: Mapping[str, Any]) -> Iterator[tuple[str, _Version]]:
    """The versions in a product tree, by the identifiers that the rest of the bulletin uses.

    A version stands in a branch ``product_version``: its name is the product's or the version, and its product's name
    is the version. The branch above names platform and series (``Linux(R580)``).
    """
    left: list[tuple[Any, str, str, int]] = [(branch, "", "", 1) for branch in _list(tree.get("branches"))]
    while left:
        entry, platform, product, depth = left.pop()
        branch = _mapping(entry)
        name, leaf = branch.get("name"), _mapping(branch.get("product"))
        if not isinstance(name, str) or depth > MAX_DEPTH:
            continue
        kind = branch.get("category")
        if kind in {"architecture", "host_name"}:
            platform = name[:200]
        elif kind == "product_name":
            product = name[:200]
        left += [(child, platform, product, depth + 1) for child in _list(branch.get("branches"))]
        key, said = leaf.get("product_id"), leaf.get("name")
        if kind != "product_version" or not isinstance(key, str):
            continue
        version = _whole(_VERSION, said) or _whole(_VERSION, name)
        if version and numbers(version):
            series = _whole(_SERIES, platform)
            yield key[:200], _Version(product or name[:200], version, series or None, platform)


def _whole(pattern: re.Pattern[str], value: object) -> str:
    """The first group of a pattern that a short text is, or all of it; empty for anything else."""
    match = pattern.fullmatch(value.strip()) if isinstance(value, str) and len(value) <= 200 else None
    return (match[1] if match.re.groups else match[0]) if match else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
