"""Packs the parts of a site that workers need (roles, templates and stacks) into one archive.

The inventory is not sent: each task contains the data of its host. A worker's machine unpacks an archive once, into a
directory that only the worker's user can read.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.places import make_folder, state_root
from hostwright.common.text import shown_bytes
from hostwright.plan.roles.site import STANDARD, Site
from hostwright.plan.targets import Roster

FOLDER = "sites"
MOST_BYTES = 64 << 20  #: maximum total size in bytes of a site's files, 100 times the standard files (our choice)
KEPT_S = 30 * 86400.0  #: seconds after which an unused archive of a site is removed (our choice)
#: directory in a site → directory with standard files in Hostwright's package
_PARTS = {"roles": "roles", "templates": "templates", "inventory/stacks": "stacks"}
_BESIDE = "beside"  #: directory in the archive for stacks next to an inventory outside the site
_PRIVATE_KEY = b"PRIVATE KEY-----"  #: text that every format of private keys contains (RFC 7468)


@dataclass(frozen=True, slots=True)
class SiteArchive:
    """A site as one archive. ``beside`` is the number of inventories outside the site that have stacks beside them."""

    digest: str
    body: bytes = field(repr=False)
    beside: int = 0


def pack(roster: Roster) -> SiteArchive:
    """Pack the site of the inventory in ``roster``. Equal files produce an equal archive.

    Raises ``InputError`` for a site that is too large, or that contains a private key.
    """
    root = roster.site.root
    beside = [path for path in roster.stack_dirs if path not in roster.site.stacks]
    places = [(root / part, part) for part, standard in _PARTS.items() if not _same(root / part, STANDARD / standard)]
    places += [(path, f"{_BESIDE}/{number}/stacks") for number, path in enumerate(beside)]
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, name in files_below(places):
            _add(archive, name, _content(path))
            if plain.tell() > MOST_BYTES:
                raise InputError(
                    f"its roles, templates and stacks are larger than {shown_bytes(MOST_BYTES)}, the limit for "
                    "sending a site to workers; keep large files elsewhere",
                    str(root),
                )
    digest = hashlib.sha256(plain.getvalue()).hexdigest()
    return SiteArchive(digest, gzip.compress(plain.getvalue(), mtime=0), len(beside))


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()


def files_below(places: Iterable[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Return every file below the directories in ``places`` with its name in the archive, sorted by name.

    ``places`` are pairs of a directory and the name of the directory in the archive. Links are followed.
    """
    return sorted(_files(places), key=lambda item: item[1])


def _files(places: Iterable[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for place, name in places:
        seen: set[str] = set()  # Symbolic links could form a loop, so each real directory is visited once.
        for folder, folders, files in os.walk(place, followlinks=True):
            if (real := os.path.realpath(folder)) in seen:
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(each for each in folders if each != "__pycache__")
            within = Path(folder).relative_to(place)
            for file in files:
                path = Path(folder) / file
                if path.is_file() and not file.endswith(".pyc"):
                    yield path, (Path(name) / within / file).as_posix()


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", str(path)) from error
    if _PRIVATE_KEY in content:
        raise InputError(
            "contains a private key, which is not sent to workers; remove the file from the site's roles, templates "
            "and stacks, and give each worker its own key or agent",
            str(path),
        )
    return content


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o600
    archive.addfile(entry, io.BytesIO(content))


def unpacked(archive: SiteArchive, root: Path | None = None) -> Path:
    """Return the directory of the site in ``archive`` on this machine. Unpack the archive if the directory is missing.

    ``root`` defaults to ``state_root()``. Raises ``ValueError`` for an archive with a wrong digest, and ``OSError`` if
    the archive cannot be unpacked.
    """
    folder = (root or state_root()) / FOLDER
    make_folder(folder)
    place = folder / archive.digest
    if not place.is_dir():
        plain = gzip.decompress(archive.body)
        if hashlib.sha256(plain).hexdigest() != archive.digest:
            raise ValueError("the archive of the site was modified during its transfer")
        beside = Path(tempfile.mkdtemp(prefix=".", dir=folder))  # This directory has mode 0700.
        try:
            with tarfile.open(fileobj=io.BytesIO(plain)) as packed:
                packed.extractall(beside, filter="data")
            (beside / "inventory").mkdir(exist_ok=True)
            (beside / "tasks.py").touch()  # This file marks the directory as a site.
            # Another worker on this machine may have unpacked the archive first.
            with suppress(FileExistsError, OSError):
                beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    os.utime(place)
    remove_unused(folder, spare=place)
    return place


def remove_unused(folder: Path, spare: Path | None = None) -> None:
    """Remove the entries of ``folder`` that were not modified for ``KEPT_S``, except ``spare``."""
    for place in folder.iterdir():
        with suppress(OSError):
            if place != spare and time.time() - place.stat().st_mtime > KEPT_S:
                shutil.rmtree(place, ignore_errors=True)


def holding(archive: SiteArchive, texts: Iterable[str]) -> str:
    """Return the name of the first file in ``archive`` that contains one of ``texts``; empty if none does."""
    wanted = [text.encode("utf-8", "surrogatepass") for text in texts]
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive.body))) as packed:
        for entry in packed:
            content = file.read() if (file := packed.extractfile(entry)) else b""
            if any(text in content for text in wanted):
                return entry.name
    return ""


def sources(archive: SiteArchive, place: Path) -> tuple[Site, tuple[Path, ...]]:
    """Return the site unpacked in the directory ``place``, and the inventories with further stacks beside them."""
    beside = tuple(place / _BESIDE / str(number) for number in range(archive.beside))
    return Site(place), (*beside, place / "inventory")
