"""A version's files as one archive, the same to the byte for the same files."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from hostwright.roles import Artifact
from hostwright.standard.roles.serving.models.directory import SavedModel

LISTING, FILES = "sha256sums", "files"  #: in the archive: the checksums, and the directory with the files


def pack(model: SavedModel, name: str, version: int, target: Path) -> Artifact:
    """Write the archive, and say what file of a stack it is for one run."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        listing = model.listing.encode()
        member = tarfile.TarInfo(LISTING)
        member.size = len(listing)
        tar.addfile(member, io.BytesIO(listing))
        for _, file in model.files:
            member = tarfile.TarInfo(f"{FILES}/{file}")
            member.size, member.mode = (model.folder / file).stat().st_size, 0o644
            with (model.folder / file).open("rb") as stream:
                tar.addfile(member, stream)
    with target.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Artifact(name="served-model", file=f"model-{name}-{version}.tar", sha256=digest, size=target.stat().st_size)
