"""Packs the parts of a site that workers need, its roles, templates and stacks, into one archive.

The inventory is not sent: each host travels with its own part of it. An archive has a digest, is unpacked once on a
worker's machine into a directory that only its user can read, and is the site of the run there.
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

FOLDER = "sites"  #: below the state directory of a worker
MOST_BYTES = 64 << 20  #: our choice: of all files of a site; a hundred times what the standard ones take
KEPT_S = 30 * 86400.0  #: our choice: an archive that no run used for so long is removed
#: the parts of a site, and the package's own folders of the same; a part that is the package's own is not sent
_PARTS = {"roles": "roles", "templates": "templates", "inventory/stacks": "stacks"}
_BESIDE = "beside"  #: stacks that lie beside an inventory which is not the site's own
_PRIVATE_KEY = b"PRIVATE KEY-----"  #: how every format of a private key is marked (RFC 7468)


@dataclass(frozen=True, slots=True)
class SiteArchive:
    """A site as one archive; ``beside`` counts the inventories that have stacks of their own."""

    digest: str
    body: bytes = field(repr=False)
    beside: int = 0


def pack(roster: Roster) -> SiteArchive:
    """Pack the site of an inventory. Equal files give an equal archive.

    Raises ``InputError`` for a site that is too large to be sent, or holds a private key among its roles.
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
                    f"it has more than {shown_bytes(MOST_BYTES)} of files in its roles, templates and stacks, "
                    "which cannot be sent to workers: keep large files elsewhere",
                    str(root),
                )
    digest = hashlib.sha256(plain.getvalue()).hexdigest()
    return SiteArchive(digest, gzip.compress(plain.getvalue(), mtime=0), len(beside))


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()


def files_below(places: Iterable[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Every file of these folders, also behind links, with its name in the archive; sorted by that name."""
    return sorted(_files(places), key=lambda item: item[1])


def _files(places: Iterable[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for place, name in places:
        seen: set[str] = set()  # a link may lead back to a folder above it
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
            "holds a private key, which is not sent to workers: give each worker a key or an agent of its own, and "
            "keep this file out of the site's roles, templates and stacks",
            str(path),
        )
    return content


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o600
    archive.addfile(entry, io.BytesIO(content))


def unpacked(archive: SiteArchive, root: Path | None = None) -> Path:
    """The directory of a site on this machine, unpacked there if it is not yet. ``root`` is ``state_root()``.

    Raises ``ValueError`` for an archive that is not what its digest says, and ``OSError``.
    """
    folder = (root or state_root()) / FOLDER
    make_folder(folder)
    place = folder / archive.digest
    if not place.is_dir():
        plain = gzip.decompress(archive.body)
        if hashlib.sha256(plain).hexdigest() != archive.digest:
            raise ValueError("the site's archive was changed on its way")
        beside = Path(tempfile.mkdtemp(prefix=".", dir=folder))  # 0700
        try:
            with tarfile.open(fileobj=io.BytesIO(plain)) as packed:
                packed.extractall(beside, filter="data")
            (beside / "inventory").mkdir(exist_ok=True)
            (beside / "tasks.py").touch()  # what makes a directory a site
            with suppress(FileExistsError, OSError):  # another worker of this machine was faster
                beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    os.utime(place)
    remove_unused(folder, spare=place)
    return place


def remove_unused(folder: Path, spare: Path | None = None) -> None:
    """Remove the entries of a folder that were not changed for ``KEPT_S``, except ``spare``."""
    for place in folder.iterdir():
        with suppress(OSError):
            if place != spare and time.time() - place.stat().st_mtime > KEPT_S:
                shutil.rmtree(place, ignore_errors=True)


def holding(archive: SiteArchive, texts: Iterable[str]) -> str:
    """The first file of an archive that contains one of these texts; empty if none does."""
    wanted = [text.encode("utf-8", "surrogatepass") for text in texts]
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive.body))) as packed:
        for entry in packed:
            content = file.read() if (file := packed.extractfile(entry)) else b""
            if any(text in content for text in wanted):
                return entry.name
    return ""


def sources(archive: SiteArchive, place: Path) -> tuple[Site, tuple[Path, ...]]:
    """The site in a directory, and the inventories that have further stacks beside them."""
    beside = tuple(place / _BESIDE / str(number) for number in range(archive.beside))
    return Site(place), (*beside, place / "inventory")
