"""The images of an OCI layout that are for hosts: by its index, which may lead to others, and holds more than images.

Builders put further manifests beside an image: of other platforms, and of what they know of the build (attestations,
of the platform ``unknown/unknown``). An image for several variants of a processor is taken in the lowest, which all
hosts can run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from hostwright.roles import Pattern, short
from hostwright.standard.roles.container.images.archives.archive import Archive
from hostwright.standard.roles.container.images.archives.names import NoArchive
from hostwright.standard.roles.container.images.archives.parts import (
    OURS,
    ImageConfig,
    ListedImage,
    document_of,
    listed_image,
)

INDEX = "index.json"
_BLOB = Pattern("blobs/sha256/([0-9a-f]{64})")
MOST_DEPTH = 4  #: indexes in indexes
MOST_LISTED = 10_000  #: our choice, of all that its indexes list
MOST_IMAGES = 100  #: our choice, of one archive
_MOST_PLATFORMS = 20  #: named in a message
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")  #: annotations, the best first
_REFERENCE = "vnd.docker.reference.type"  #: the annotation of what belongs to an image and is none
_CONFIGS = (
    "",
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Platform:
    os: str = ""
    architecture: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(short(part) for part in (self.os, self.architecture, self.variant) if part)


@dataclass(frozen=True, slots=True)
class _Descriptor:
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]
    platform: _Platform | None = None
    annotations: Mapping[str, str] | None = None
    media_type: Annotated[str, Field(validation_alias="mediaType")] = ""


@dataclass(frozen=True, slots=True)
class _Manifest:
    """An index or a manifest: the one has ``manifests``, the other ``config`` and ``layers``."""

    manifests: Annotated[list[_Descriptor], Field(max_length=1000)] | None = None
    config: _Descriptor | None = None
    layers: Annotated[list[_Descriptor], Field(max_length=1000)] | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """A manifest for our hosts."""

    manifest: _Manifest
    name: str  #: that an index gives it
    variant: str


def images_of_layout(archive: Archive, *, unnamed: bool = False) -> list[ListedImage]:
    """The images for our hosts; with ``unnamed``, without the names that they have. Raises ``NoArchive``."""
    for place, part in archive.parts.items():
        blob = _BLOB.fullmatch(place)
        if blob and blob[1] != part.sha256:
            raise NoArchive(f"the blob sha256:{blob[1]} was altered: its bytes have the checksum {part.sha256}")
    walk = _Walk(archive)
    found: list[_Found] = []
    lowest: dict[str, str] = {}
    for each in walk.images(document_of(archive, INDEX, _Manifest), "", 0):
        found.append(each)
        lowest[each.name] = min(each.variant, lowest.get(each.name, each.variant))
        if len(found) > MOST_IMAGES:
            raise NoArchive(f"it has more than {MOST_IMAGES} images")
    if not found:
        others = list(walk.others)
        more = f" and {len(others) - _MOST_PLATFORMS} others" if len(others) > _MOST_PLATFORMS else ""
        has = f"only for {', '.join(others[:_MOST_PLATFORMS])}{more}" if others else "nor for any other platform"
        raise NoArchive(f"it has no image for linux/amd64, {has}")
    return [
        _listed(archive, each.manifest, "" if unnamed else each.name)
        for each in found
        if each.variant == lowest[each.name]
    ]


def _listed(archive: Archive, manifest: _Manifest, name: str) -> ListedImage:
    assert manifest.config is not None  # noqa: S101 - of those that a walk gives
    config, layers = _blob(archive, manifest.config), [_blob(archive, layer) for layer in manifest.layers or ()]
    return listed_image(archive, config, layers, [name] if name else [])


@dataclass(slots=True)
class _Walk:
    """A walk from index to index. Each document is read once, however often it is listed."""

    archive: Archive
    others: dict[str, None] = field(default_factory=dict)  #: platforms that are not our hosts'
    _read: dict[str, _Manifest] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def images(self, index: _Manifest, name: str, depth: int) -> Iterator[_Found]:
        """The manifests of images for our hosts, each with the name that an index gives it."""
        if depth > MOST_DEPTH:
            raise NoArchive("its indexes lead to each other")
        for descriptor in index.manifests or ():
            self._count += 1
            if self._count > MOST_LISTED:
                raise NoArchive(f"its indexes list more than {MOST_LISTED:,} manifests")
            notes = descriptor.annotations or {}
            platform = descriptor.platform
            if _REFERENCE in notes or (platform and platform.os == _UNKNOWN):
                continue  # an attestation
            if platform and (platform.os, platform.architecture) != OURS:
                self.others[str(platform)] = None  # whose blobs may be missing
                continue
            own = next((text for key in _NAMES if (text := notes.get(key))), name)
            inner = self._document(descriptor)
            if inner.manifests is not None:
                yield from self.images(inner, own, depth + 1)
            elif inner.config is not None and inner.config.media_type in _CONFIGS:
                yield from self._image(inner, own, platform)

    def _image(self, manifest: _Manifest, name: str, platform: _Platform | None) -> Iterator[_Found]:
        """An image, which says its platform itself where the index does not."""
        assert manifest.config is not None  # noqa: S101 - asked before
        if platform is None and (other := self._other(_blob(self.archive, manifest.config))):
            self.others[other] = None
            return
        yield _Found(manifest, name, (platform and platform.variant) or "v1")

    def _other(self, config: str) -> str:
        """The platform that a configuration names; empty where it is that of our hosts."""
        if config not in self._said:
            said = document_of(self.archive, config, ImageConfig)
            ours = (said.os, said.architecture) == OURS
            self._said[config] = "" if ours else str(_Platform(said.os, said.architecture))
        return self._said[config]

    def _document(self, descriptor: _Descriptor) -> _Manifest:
        name = _blob(self.archive, descriptor)
        if name not in self._read:
            self._read[name] = document_of(self.archive, name, _Manifest)
        return self._read[name]


def _blob(archive: Archive, descriptor: _Descriptor) -> str:
    """The name of what a descriptor describes, which must be there as described."""
    digest = descriptor.digest
    name = f"blobs/sha256/{digest.removeprefix('sha256:')}"
    part = archive.parts.get(name)
    if part is None:
        raise NoArchive(f"the blob {digest} is missing")
    if part.size != descriptor.size:
        raise NoArchive(f"the blob {digest} has {part.size:,} bytes instead of {descriptor.size:,}")
    return name
