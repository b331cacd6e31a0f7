"""The files of an archive as what an image consists of: documents, layers, blobs, each checked by its checksum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from hostwright.roles import Pattern, short
from hostwright.standard.roles.container.images.archives.archive import DAMAGED, Archive, ArchivedFile
from hostwright.standard.roles.container.images.archives.names import NoArchive, inside
from hostwright.standard.roles.container.images.reference import read_image_name

OURS = ("linux", "amd64")  #: the system and processor of hosts
_DIGEST = Pattern(r"sha256:([0-9a-f]{64})")
_BY_SUM = Pattern(r"(?:.*/)?([0-9a-f]{64})(?:\.json|\.tar)?")  #: a file that is named after its checksum
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ArchivedImage:
    """An image in an archive: its ID (``sha256:…``) and its names."""

    id: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedImage:
    """An image as an archive lists it: by the names of its files there."""

    image: ArchivedImage
    config: str
    layers: tuple[str, ...]
    unpacked: int  #: what its layers take on a disk at least


@dataclass(frozen=True, slots=True)
class _RootFs:
    diff_ids: list[str] | None = None


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What Hostwright reads of an image's configuration."""

    architecture: str
    os: str
    rootfs: _RootFs


def listed_image(archive: Archive, config: str, layers: Iterable[str], names: Iterable[str]) -> ListedImage:
    """An image whose layers are those that its configuration names. Raises ``NoArchive``."""
    layers = tuple(layers)
    files = [part_of(archive, layer) for layer in layers]
    part = part_of(archive, config)
    said = document_of(archive, config, ImageConfig)
    if (said.os, said.architecture) != OURS:
        raise NoArchive(f"the image is for {short(said.os)} on {short(said.architecture)}, not for Linux on amd64")
    wanted = said.rootfs.diff_ids or []
    if len(wanted) != len(files):
        raise NoArchive(f"the image has {len(wanted)} layers, and {len(files)} are listed")
    for number, (layer, digest) in enumerate(zip(files, wanted, strict=True), 1):
        if not _DIGEST.fullmatch(digest):
            raise NoArchive(f"the digest of its layer {number} cannot be read")
        if layer.packed == DAMAGED:
            raise NoArchive(f"layer {number} (sha256:{layer.sha256}) is damaged: it cannot be unpacked")
        if layer.packed == "zstd":
            raise NoArchive(
                f"layer {number} (sha256:{layer.sha256}) is compressed with zstd, which Docker before 23 cannot "
                "unpack: write it with gzip (buildx: --output type=oci,compression=gzip,force-compression=true)"
            )
        if layer.inner and f"sha256:{layer.inner}" != digest:
            raise NoArchive(f"layer {number} is not what the image says: {layer.inner[:12]} instead of {digest[7:19]}")
    image = ArchivedImage(f"sha256:{part.sha256}", tuple(dict.fromkeys(map(_own, names))))
    return ListedImage(image, config, layers, sum(layer.unpacked for layer in files))


def _own(name: str) -> str:
    try:
        return familiar(name)
    except NoArchive as error:
        raise NoArchive(f"{error}; --name NAME:TAG gives it one") from None


def familiar(name: str) -> str:
    """A name as Docker shows it. Raises ``NoArchive`` for one without a tag.

    >>> familiar("docker.io/library/debian:11")
    'debian:11'
    """
    try:
        image = read_image_name(name)
    except ValueError as error:
        raise NoArchive(
            f"{short(name)!r} is no name with a tag, such as tensorflow/tensorflow:2.9.0: {error}"
        ) from None
    if not image.tag or image.digest:
        raise NoArchive(f"{short(name)!r} is no name with a tag alone, such as tensorflow/tensorflow:2.9.0")
    return image.shown


def part_of(archive: Archive, name: str) -> ArchivedFile:
    """A file of the archive, or the one that its name is a link to. Raises ``NoArchive`` where it is not there, or is
    another than its name says."""
    place = inside(name)
    part = archive.parts.get(archive.links.get(place, place))
    if part is None:
        raise NoArchive(f"{short(name)!r} is not in it")
    said = _BY_SUM.fullmatch(place)
    if said and said[1] not in (part.sha256, part.inner):
        raise NoArchive(f"{short(name)} has another checksum than its name says: it begins with {part.sha256[:12]}")
    return part


def document_of(archive: Archive, name: str, kind: type[_T]) -> _T:
    """A JSON document of the archive, of this kind. Raises ``NoArchive``."""
    text = part_of(archive, name).text
    if not text:
        raise NoArchive(f"{short(name)} is no JSON document, or is too long for one")
    try:
        document: _T = TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise NoArchive(f"{short(name)}: {short(f'{where}: ' if where else '')}{short(first['msg'])}") from error
    return document
