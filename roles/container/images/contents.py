"""Which images an archive holds: by ``manifest.json``, as ``docker save`` writes it, or by the index of an OCI layout.

An image's ID is the checksum of its configuration. All that an archive says of its images is compared with its bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from hostwright.common.errors import InputError
from hostwright.common.text import short
from hostwright.standard.roles.container.images.archive import Archive, ArchivedFile, read_archive
from hostwright.standard.roles.container.images.names import NoArchive, inside
from hostwright.standard.roles.container.images.reference import read_image_name

MOST_IMAGES = 100  #: our choice, of one archive
MOST_DEPTH = 4  #: indexes in indexes
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_BY_SUM = re.compile(r"(?:.*/)?([0-9a-f]{64})(?:\.json|\.tar)?")  #: a file that is named after its checksum
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")  #: annotations, the best first
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ArchivedImage:
    """An image in an archive: its ID (``sha256:…``) and its names."""

    id: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """The images of an archive. ``manifest`` is the ``manifest.json`` that Docker needs, where the archive has none;
    ``unpacked`` is what all layers take on a disk at least."""

    archive: Archive
    images: tuple[ArchivedImage, ...]
    unpacked: int
    manifest: str = ""


@dataclass(frozen=True, slots=True)
class _Saved:
    """An image in ``manifest.json``."""

    config: Annotated[str, Field(validation_alias="Config", max_length=512)]
    layers: Annotated[list[str] | None, Field(validation_alias="Layers", max_length=1000)]
    tags: Annotated[list[str] | None, Field(validation_alias="RepoTags", max_length=100)] = None


@dataclass(frozen=True, slots=True)
class _Platform:
    os: str = ""
    architecture: str = ""


@dataclass(frozen=True, slots=True)
class _Descriptor:
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]
    platform: _Platform | None = None
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Manifest:
    """An index or a manifest of an OCI layout: the one has ``manifests``, the other ``config`` and ``layers``."""

    manifests: Annotated[list[_Descriptor], Field(max_length=1000)] | None = None
    config: _Descriptor | None = None
    layers: Annotated[list[_Descriptor], Field(max_length=1000)] | None = None


@dataclass(frozen=True, slots=True)
class _RootFs:
    diff_ids: list[str] | None = None


@dataclass(frozen=True, slots=True)
class _Config:
    architecture: str
    os: str
    rootfs: _RootFs


def read_contents(path: Path) -> Contents:
    """The images of an archive. Raises ``InputError`` where it is none, or says what its bytes do not."""
    archive = read_archive(path)
    try:
        if "manifest.json" in archive.parts:
            return _saved(archive)
        if "index.json" in archive.parts:
            return _layout(archive)
        raise NoArchive("it has neither manifest.json, as `docker save` writes, nor index.json, as an OCI layout has")
    except NoArchive as error:
        raise InputError(f"this is no archive of images: {error}", str(path)) from error


def _saved(archive: Archive) -> Contents:
    """What ``docker save`` wrote, and those that do as it does."""
    saved = _document(archive, "manifest.json", list[_Saved])
    if not 0 < len(saved) <= MOST_IMAGES:
        raise NoArchive(f"manifest.json names {len(saved)} images")
    images, unpacked = [], 0
    for image in saved:
        layers = [_part(archive, name) for name in image.layers or ()]
        images.append(_image(archive, image.config, layers, image.tags or []))
        unpacked += sum(layer.unpacked for layer in layers)
    return Contents(archive, _named(images), unpacked)


def _layout(archive: Archive) -> Contents:
    """An OCI layout, which Docker before 25 takes only with a ``manifest.json``."""
    images, unpacked, saved = [], 0, []
    for manifest, names in _manifests(archive, _document(archive, "index.json", _Manifest), "", 0):
        assert manifest.config is not None  # noqa: S101 - of those that it gives
        config, layers = _blob(archive, manifest.config), [_blob(archive, layer) for layer in manifest.layers or ()]
        image = _image(archive, config, [archive.parts[layer] for layer in layers], [names] if names else [])
        images.append(image)
        saved.append({"Config": config, "RepoTags": list(image.tags), "Layers": layers})
        unpacked += sum(archive.parts[layer].unpacked for layer in layers)
        if len(images) > MOST_IMAGES:
            raise NoArchive(f"it has more than {MOST_IMAGES} images")
    if not images:
        raise NoArchive("it has no image for Linux on amd64")
    return Contents(archive, _named(images), unpacked, json.dumps(saved))


def _manifests(archive: Archive, index: _Manifest, name: str, depth: int) -> Iterator[tuple[_Manifest, str]]:
    """The manifests of images for our machines, each with the name that an index gives it."""
    if depth > MOST_DEPTH:
        raise NoArchive("its indexes lead to each other")
    for descriptor in index.manifests or ():
        platform = descriptor.platform
        if platform and (platform.os, platform.architecture) != ("linux", "amd64"):
            continue  # also those of attestations, which are for "unknown"
        own = next((text for key in _NAMES if (text := (descriptor.annotations or {}).get(key))), name)
        inner = _document(archive, _blob(archive, descriptor), _Manifest)
        if inner.manifests is not None:
            yield from _manifests(archive, inner, own, depth + 1)
        elif inner.config is not None:
            yield inner, own


def _blob(archive: Archive, descriptor: _Descriptor) -> str:
    """The name of what a descriptor describes, which must be there as described."""
    name = f"blobs/sha256/{descriptor.digest.removeprefix('sha256:')}"
    part = _part(archive, name)
    if part.size != descriptor.size:
        raise NoArchive(f"{name} has {part.size:,} bytes instead of {descriptor.size:,}")
    return name


def _image(archive: Archive, config: str, layers: list[ArchivedFile], names: list[str]) -> ArchivedImage:
    """An image whose layers are those that its configuration names."""
    part = _part(archive, config)
    said = _document(archive, config, _Config)
    if (said.os, said.architecture) != ("linux", "amd64"):
        raise NoArchive(f"the image is for {short(said.os)} on {short(said.architecture)}, not for Linux on amd64")
    wanted = said.rootfs.diff_ids or []
    if len(wanted) != len(layers):
        raise NoArchive(f"the image has {len(wanted)} layers, and {len(layers)} are listed")
    for number, (layer, digest) in enumerate(zip(layers, wanted, strict=True), 1):
        if not _DIGEST.fullmatch(digest):
            raise NoArchive(f"the digest of its layer {number} cannot be read")
        if layer.inner and f"sha256:{layer.inner}" != digest:
            raise NoArchive(f"layer {number} is not what the image says: {layer.inner[:12]} instead of {digest[7:19]}")
    return ArchivedImage(f"sha256:{part.sha256}", tuple(dict.fromkeys(map(_familiar, names))))


def _named(images: list[ArchivedImage]) -> tuple[ArchivedImage, ...]:
    """Each image once, with all its names. One without a name could not be told from another on a host."""
    named: dict[str, tuple[str, ...]] = {}
    for image in images:
        if not image.tags:
            raise NoArchive("an image in it has no name: save it by name and tag (docker save NAME:TAG), not by its ID")
        named[image.id] = tuple(dict.fromkeys((*named.get(image.id, ()), *image.tags)))
    tags = [tag for tags in named.values() for tag in tags]
    if twice := next((tag for tag in tags if tags.count(tag) > 1), ""):
        raise NoArchive(f"two images in it have the name {twice}")
    return tuple(ArchivedImage(digest, names) for digest, names in named.items())


def _familiar(name: str) -> str:
    """A name as Docker shows it. Raises ``NoArchive`` for one without a tag."""
    try:
        image = read_image_name(name)
    except ValueError as error:
        raise NoArchive(
            f"{short(name)!r} is no name with a tag, such as tensorflow/tensorflow:2.9.0: {error}"
        ) from None
    if not image.tag or image.digest:
        raise NoArchive(f"{short(name)!r} is no name with a tag alone, such as tensorflow/tensorflow:2.9.0")
    return image.shown


def _part(archive: Archive, name: str) -> ArchivedFile:
    """A file of the archive, or the one that its name is a link to."""
    place = inside(name)
    part = archive.parts.get(archive.links.get(place, place))
    if part is None:
        raise NoArchive(f"{short(name)!r} is not in it")
    said = _BY_SUM.fullmatch(place)
    if said and said[1] not in (part.sha256, part.inner):
        raise NoArchive(f"{short(name)} has another checksum than its name says: it begins with {part.sha256[:12]}")
    return part


def _document(archive: Archive, name: str, kind: type[_T]) -> _T:
    """A JSON document of the archive, of this kind."""
    text = _part(archive, name).text
    if not text:
        raise NoArchive(f"{short(name)} is no JSON document, or is too long for one")
    try:
        document: _T = TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise NoArchive(f"{short(name)}: {short(f'{where}: ' if where else '')}{short(first['msg'])}") from error
    return document
