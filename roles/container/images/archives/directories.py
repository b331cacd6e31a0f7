"""An OCI layout that lies here as a directory: packed into an archive, since hosts get a file with a checksum.

The same directory gives the same archive, byte by byte, so that a push which was cut off goes on where it ended.
"""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostwright.roles import InputError, Pattern, short
from hostwright.standard.roles.container.images.archives.archive import MOST_MEMBERS
from hostwright.standard.roles.container.images.archives.layouts import INDEX

_BLOBS = "blobs/sha256"
_BLOB = Pattern("[0-9a-f]{64}")


@contextmanager
def archive_of(path: Path) -> Iterator[Path]:
    """The archive at a path, or one made of the OCI layout there, which is gone after the block.

    Raises ``InputError`` for a directory that is no layout, or holds anything but files where a layout has blobs.
    """
    if not path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="hostwright-images-") as folder:
        target = Path(folder) / "layout.tar"
        try:
            _pack(path, target)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else short(str(error))
            where = f" ({error.filename})" if error.filename else f" (its archive is made in {folder}: see TMPDIR)"
            raise InputError(f"it cannot be packed: {why}{where}", str(path)) from error
        yield target


def _pack(layout: Path, target: Path) -> None:
    if not (layout / INDEX).exists():
        raise InputError(f"this is no OCI layout: the directory has no {INDEX}", str(layout))
    blobs = _blobs(layout)
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in (INDEX, *(f"{_BLOBS}/{blob}" for blob in blobs)):
            descriptor = os.open(layout / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would block
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    raise InputError(f"{name} is no file", str(layout))
                member = tarfile.TarInfo(name)
                member.size = found.st_size
                tar.addfile(member, file)


def _blobs(layout: Path) -> list[str]:
    """The names of the blobs, in their order; what a tool left there unfinished is none."""
    names: list[str] = []
    folder = layout / _BLOBS
    if not folder.is_dir():
        return names
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _BLOB.fullmatch(entry.name):
                continue
            if entry.is_symlink():
                raise InputError(f"{_BLOBS}/{entry.name} is a link: copy the directory with cp -rL", str(layout))
            names.append(entry.name)
            if len(names) > MOST_MEMBERS:
                raise InputError(f"it has more than {MOST_MEMBERS:,} blobs", str(layout))
    return sorted(names)
