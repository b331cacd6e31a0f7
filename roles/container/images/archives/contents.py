"""Which images an archive holds: by ``manifest.json``, as ``docker save`` writes it, or by the index of an OCI layout.

An image's ID is the checksum of its configuration. All that an archive says of its images is compared with its bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hostwright.roles import InputError, short
from hostwright.standard.roles.container.images.archives.archive import Archive, read_archive
from hostwright.standard.roles.container.images.archives.layouts import INDEX, MOST_IMAGES, images_of_layout
from hostwright.standard.roles.container.images.archives.names import NoArchive
from hostwright.standard.roles.container.images.archives.parts import (
    ArchivedImage,
    ListedImage,
    document_of,
    familiar,
    listed_image,
    part_of,
)

MANIFEST = "manifest.json"
_KEYS = ("Config", "Layers", "RepoTags")


@dataclass(frozen=True, slots=True)
class Contents:
    """The images of an archive. ``manifest`` is the ``manifest.json`` that Docker needs, where the archive has none, or
    one with other names; ``unpacked`` is what all layers take on a disk at least."""

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


def read_contents(path: Path, *, name: str = "", shown: Path | None = None) -> Contents:
    """The images of an archive, which messages call ``shown``. ``name`` takes the place of the names of its one image.

    Raises ``InputError`` where it is no archive, or says what its bytes do not.
    """
    archive = read_archive(path, shown)
    try:
        if MANIFEST in archive.parts:
            return _contents(archive, _saved(archive, unnamed=bool(name)), name, manifest=bool(name))
        if INDEX in archive.parts:
            return _contents(archive, images_of_layout(archive, unnamed=bool(name)), name, manifest=True)
        raise NoArchive("it has neither manifest.json, as `docker save` writes, nor index.json, as an OCI layout has")
    except NoArchive as error:
        raise InputError(f"this is no archive of images: {error}", str(shown or path)) from error


def _contents(archive: Archive, listed: Sequence[ListedImage], name: str, *, manifest: bool) -> Contents:
    """What is brought to hosts, each image once."""
    named = _named(listed, name)
    entries = [{"Config": one.config, "RepoTags": one.image.tags, "Layers": one.layers} for one in named]
    text = json.dumps(entries) if manifest else ""
    return Contents(archive, tuple(one.image for one in named), sum(one.unpacked for one in listed), text)


def _saved(archive: Archive, *, unnamed: bool) -> list[ListedImage]:
    """What ``docker save`` wrote, and those that do as it does."""
    saved = document_of(archive, MANIFEST, list[_Saved])
    for key in {key for entry in json.loads(part_of(archive, MANIFEST).text) for key in entry}:
        if key not in _KEYS and key.lower() in map(str.lower, _KEYS):
            raise NoArchive(f"{MANIFEST} has {short(key)!r}, which Docker takes for a key of another spelling")
    if not 0 < len(saved) <= MOST_IMAGES:
        raise NoArchive(f"{MANIFEST} names {len(saved)} images")
    return [
        listed_image(archive, image.config, image.layers or (), () if unnamed else image.tags or ()) for image in saved
    ]


def _named(listed: Sequence[ListedImage], name: str) -> list[ListedImage]:
    """Each image once, with all its names, or the given one. One without a name could not be told from another on a
    host."""
    named: dict[str, ListedImage] = {}
    for one in listed:
        tags = (familiar(name),) if name else one.image.tags
        if not tags:
            raise NoArchive(
                "an image in it has no name: give it one (--name NAME:TAG), or save it by name and tag, not by its ID"
            )
        known = named.setdefault(one.image.id, one)
        image = ArchivedImage(one.image.id, tuple(dict.fromkeys((*known.image.tags, *tags))))
        named[image.id] = replace(known, image=image)
    if name and len(named) > 1:
        raise NoArchive(f"--name is the name of one image, and {len(named)} are in it")
    every = [tag for one in named.values() for tag in one.image.tags]
    if twice := next((tag for tag, times in Counter(every).items() if times > 1), ""):
        raise NoArchive(f"two images in it have the name {twice}")
    return list(named.values())
