"""Vendor files, the manifest that lists them, and builds that are skipped if their recipe has not changed."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from hostwright.common.errors import LabError

#: bytes per read while hashing; larger blocks are not faster
HASH_BLOCK = 1 << 20
MANIFEST = "manifest.json"


class Profile(StrEnum):
    """The share of real vendor bytes in a build."""

    SMALL = "small"  #: real compiler and runtime, stand-ins for the large math libraries; for tests
    FULL = "full"  #: real libraries; for the demo


@dataclass(frozen=True, slots=True)
class VendorFile:
    """One file (or directory, for an apt repository) that a user would download from the vendor."""

    name: str  #: the vendor's file name, relative to the vendor directory
    artifact: str  #: key of the artifact in the stack file
    version: str
    sha256: str  #: of the file; empty for a directory
    size: int  #: bytes; of a directory, the sum of its files
    stand_in: bool  #: whether any byte is not the vendor's own
    note: str  #: the real parts and the other parts
    fingerprint: str = ""  #: fingerprint of the signing OpenPGP key, for a repository and for a key file; else empty

    @property
    def is_directory(self) -> bool:
        """Whether the file is a directory: an apt repository, with a signature inside instead of a checksum."""
        return not self.sha256


class VendorBuildError(LabError):
    """A vendor file could not be built on this machine."""


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def describe(
    path: Path, *, artifact: str, version: str, stand_in: bool, note: str, name: str = "", fingerprint: str = ""
) -> VendorFile:
    """Return the record of a completed file or directory; `name` is its path below the vendor directory unless flat."""
    if path.is_dir():
        size, digest = sum(each.stat().st_size for each in path.rglob("*") if each.is_file()), ""
    else:
        size, digest = path.stat().st_size, sha256_of(path)
    return VendorFile(name or path.name, artifact, version, digest, size, stand_in, note, fingerprint)


def recipe_key(profile: Profile, sources: Iterable[Path], **inputs: str) -> str:
    """Return the hash of a recipe's sources and inputs; any changed byte changes the key."""
    digest = hashlib.sha256(profile.encode())
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    for key, value in sorted(inputs.items()):
        digest.update(f"{key}={value}\0".encode())
    return digest.hexdigest()


def build_once(out: Path, builder: str, key: str, make: Callable[[Path], list[VendorFile]]) -> list[VendorFile]:
    """Run `make` in an empty directory beside the files of `out`, unless the files of the same recipe exist.

    `make(work)` writes the returned files into `work`. They are renamed into `out` when all are complete; the recipe's
    record is written last. An interrupted build leaves nothing that counts as built, and the next build removes its
    leftovers. Only one build of a profile runs at a time, by a lock of `lab.vendor.build`.
    """
    record = out / ".recipes" / f"{builder}.json"
    known = _recorded(record, key)
    if known is not None and all(_present(out, file) for file in known):
        return known
    record.parent.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    for left in out.glob(f".{builder}.*"):
        shutil.rmtree(left)
    print(f"lab: building {builder} for the profile {out.name}", file=sys.stderr, flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f".{builder}.", dir=out) as work:
        files = make(Path(work))
        for file in files:
            _move(Path(work) / file.name, out / file.name)
    _write_json(record, {"key": key, "files": [asdict(file) for file in files]})
    print(f"lab: built {builder} in {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
    return files


def write_manifest(out: Path, profile: Profile, files: Iterable[VendorFile]) -> Path:
    """Write the list of all files in `out` to `manifest.json`, atomically."""
    path = out / MANIFEST
    _write_json(path, {"profile": profile.value, "files": [asdict(file) for file in files]})
    return path


def read_manifest(vendor: Path) -> tuple[Profile, list[VendorFile]]:
    """Return profile and files from `manifest.json`. Raises `VendorBuildError` if it does not exist."""
    path = vendor / MANIFEST
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        message = f"{path} does not exist; build the vendor files with `python -m lab build --profile small`"
        raise VendorBuildError(message) from None
    return Profile(data["profile"]), [VendorFile(**each) for each in data["files"]]


def _recorded(record: Path, key: str) -> list[VendorFile] | None:
    """Return the files of the last complete build with this recipe, or None."""
    try:
        data = json.loads(record.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return [VendorFile(**each) for each in data["files"]] if data["key"] == key else None


def _present(out: Path, file: VendorFile) -> bool:
    """Return whether a recorded file exists with its size.

    Hashing gigabytes at each start would take seconds.
    """
    path = out / file.name
    if file.is_directory:
        return path.is_dir()
    return path.is_file() and path.stat().st_size == file.size


def _move(source: Path, target: Path) -> None:
    """Rename into place. A directory cannot replace another directory, so an old one is deleted first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        shutil.rmtree(target)
    source.replace(target)


def _write_json(path: Path, data: Mapping[str, object]) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n")
    temporary.replace(path)
