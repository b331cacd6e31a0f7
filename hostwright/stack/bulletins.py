"""Reads security bulletins (CSAF 2.0, docs.oasis-open.org/csaf) from a directory that an operator downloaded.

Each fixed version in a bulletin becomes a ``Floor``. The directory is untrusted: file sizes are limited, files are
parsed strictly, and only names and numbers are used.
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

#: maximum number of bulletin files below a directory (one vendor publishes 8,000 bulletins in ten years)
MAX_FILES = 20_000
MAX_BYTES = 4 * 1024 * 1024  #: maximum size of a bulletin file in bytes. The largest known bulletin has 0.6 MB.
MAX_PRODUCTS = 20_000  #: maximum number of products in a bulletin
MAX_DEPTH = 12  #: maximum number of levels in a bulletin's product tree. Known bulletins have 4 levels.

_DAY = re.compile(r"(20[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))(?:T[0-9:.Z+-]{1,32})?")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,79}")
_CVE = re.compile(r"CVE-[0-9]{4}-[0-9]{4,9}")
_VERSION = re.compile(r"[vV]?([0-9]{1,9}(?:\.[0-9]{1,9}){1,7})")
_SERIES = re.compile(r"[^()]{1,80}\(R([0-9]{1,5})\)")
#: pattern for names of platforms that Hostwright does not support
_WINDOWS = re.compile(r"(?i)windows|vgpu|cloud gaming|virtual gpu")


@dataclass(frozen=True, slots=True)
class Read:
    """The result of reading a directory of bulletins: fixed versions by product, number of bulletins, and skipped
    files.
    """

    advisories: Advisories
    bulletins: int
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Version:
    product: str
    version: str
    series: str | None
    platform: str


def read_bulletins(folder: Path, known: Advisories) -> Read:
    """Return the fixed versions in all bulletins (``*.json``) below ``folder``, for the products in ``known``.

    Raises ``InputError`` if the directory cannot be read or contains no bulletin.
    """
    if not folder.is_dir():
        raise InputError(f"'{folder}' is not a directory; give a directory with CSAF bulletins", "--advisories")
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
        raise InputError(
            f"'{folder}' has no security bulletin in CSAF 2.0 (JSON); give another directory", "--advisories"
        )
    products = {name: Product(floors=tuple(each)) for name, each in sorted(floors.items())}
    return Read(Advisories(date=newest, products=products), count, tuple(skipped))


def _files(folder: Path) -> Iterator[Path]:
    """Raises ``InputError`` if ``folder`` has too many files, or a directory that cannot be read. Links are not
    followed.
    """
    found: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += (Path(place, name) for name in files if name.endswith(".json"))
        if len(found) > MAX_FILES:
            raise InputError(
                f"'{folder}' contains more than {MAX_FILES} files; give a smaller directory", "--advisories"
            )
    yield from sorted(found)


def _unreadable(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be read: {error.strerror}", "--advisories") from error


def _document(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; ``None`` if the file is not regular, is too large, or has other content."""
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
    """Yield each fixed version in one bulletin, with its product.

    ``names`` maps product names in bulletins to product names in ``Advisories``.
    """
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
    match = pattern.fullmatch(value.strip()) if isinstance(value, str) and len(value) <= 200 else None
    return (match[1] if match.re.groups else match[0]) if match else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
