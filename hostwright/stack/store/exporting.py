"""Writes the export directory, which transfers files of stacks to a machine without a network.

``sources.Exported`` reads this directory:

    SHA256SUMS                        checked by `sha256sum -c SHA256SUMS`
    <two characters>/<sha256>/<file>
    pins/<stack>.lock.yml, pins/<stack>.lock.packages.json
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hostwright.common.errors import ArtifactError
from hostwright.common.places import refused, write_whole
from hostwright.stack.store.artifacts import Store, settle
from hostwright.stack.store.mirroring import Mirrored, TransferProgress
from hostwright.stack.store.sources import PINS, SUMS


def export(files: Iterable[Mirrored], locks: Iterable[Path], folder: Path, progress: TransferProgress) -> None:
    """Write ``files`` of the store, and the lock files ``locks`` that pin some of these files, into ``folder``.

    Existing files with the right size are kept. Raises ``ArtifactError`` if a file cannot be written.
    """
    there = Store(folder)
    wanted = {there.path(file.sha256, file.file): file for file in files}
    try:
        (folder / PINS).mkdir(parents=True, exist_ok=True)
        for path, file in wanted.items():
            if not path.is_file() or path.stat().st_size != file.size:
                _put(file, path, progress)
        for lock in locks:
            if lock.is_file():
                write_whole(folder / PINS / lock.name, lock.read_bytes(), 0o644)
        sums = sorted(f"{path.parent.name}  {path.relative_to(folder)}\n" for path in folder.glob("??/*/*"))
        write_whole(folder / SUMS, "".join(sums).encode(), 0o644)
    except OSError as error:
        raise ArtifactError(f"{error.filename or folder}: {refused(error, 'give another directory')}") from error


def _put(file: Mirrored, path: Path, progress: TransferProgress) -> None:
    """Copy ``file`` to ``path``. The copy gets this name only when it is complete."""
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    progress.show(file.file, 0, file.size)
    try:
        shutil.copyfile(file.path, part)
        settle(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    progress.show(file.file, file.size, file.size)
    progress.end(file.file, "exported")
