"""State that ``images.push`` applies: the images of an archive are in a host's Docker.

Only Docker on the host reads the archive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hostwright.resources import (
    ABSENT,
    Change,
    Facts,
    Planned,
    Probe,
    Refusal,
    Resource,
    Step,
    few,
    host_path,
    sha256_of,
)
from hostwright.roles import Artifact, InputError, Pattern, sh, sh_file, shown_bytes
from hostwright.standard.roles.container.images.facts import CONTAINERD, IMAGES_PROBE, LOADS, read_images
from hostwright.standard.roles.container.images.reference import is_tagged

LOAD_TIMEOUT_S = 2 * 3600.0  #: time limit in seconds for loading an archive. On a slow disk, 20 GB take two hours.
UNKNOWN = "unknown"
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9._+-]+")
_ID = Pattern("sha256:[0-9a-f]{64}")
#: disk space for loading an archive, as a multiple of the archive's size
_OF_UNPACKING = 2


@dataclass(frozen=True, slots=True)
class LoadedImage:
    """Image that Docker loaded from an archive: its ID (``sha256:…``) and a name."""

    id: str
    name: str


def artifact_of(path: Path) -> Artifact:
    """Return the archive at ``path`` as an artifact for hosts. Raises ``InputError`` for an unreadable file."""
    if path.is_dir():
        raise InputError(
            "is a directory, but `docker load` needs an archive file; convert an OCI layout with `skopeo "
            "copy oci:DIRECTORY docker-archive:FILE:NAME:TAG`",
            str(path),
        )
    try:
        sha256, size = sha256_of(path), path.stat().st_size
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from error
    file = f"image-{_NO_FILE_NAME.sub('-', path.name)[:100]}"
    return Artifact(name="image-archive", file=file, sha256=sha256, size=size)


@dataclass(frozen=True, slots=True)
class ImagesLoaded(Resource):
    """Docker has loaded an archive, and the image names point to the archive's images.

    ``archive`` is the archive's name for operators. ``names`` are the image names to set. If ``names`` is empty, Docker
    sets the archive's only name, which must not point to another image.
    """

    artifact: Artifact
    archive: str
    names: tuple[str, ...] = ()

    @property
    def _record(self) -> str:
        return f"{LOADS}/{self.artifact.sha256}"

    @property
    def _recorded(self) -> Probe:
        return Probe(sh("cat -- %s 2>/dev/null || :", self._record), root=True)

    def probes(self) -> tuple[Probe, ...]:
        return (IMAGES_PROBE, self._recorded)

    def images(self, facts: Facts) -> tuple[LoadedImage, ...]:
        """Return the archive's images in the host's Docker; empty if an image is missing or a name points to another
        image.
        """
        there = read_images(facts)
        rows = [line.split(" ") for line in facts[self._recorded].text.splitlines()]
        found = tuple(LoadedImage(*row) for row in rows if len(row) == 2 and there.tags.get(row[1]) == row[0])
        whole = len(found) == len(rows) and all(_ID.fullmatch(image.id) and is_tagged(image.name) for image in found)
        as_named = not self.names or {image.name for image in found} == {*self.names}
        return found if whole and as_named and self.artifact.sha256 not in there.cut else ()

    def plan(self, facts: Facts) -> Planned | None:
        found = read_images(facts)
        what = f"image {few([*self.names])}" if self.names else f"images of {self.archive}"
        of = f"{self.archive}, {shown_bytes(self.artifact.size or 0)}, sha256:{(self.artifact.sha256 or '')[:12]}"
        want = f"loaded from {of}; the host's Docker reports the images"
        if trouble := found.trouble or (CONTAINERD if found.store else ""):
            return Refusal(what, UNKNOWN, want, "images-docker", f"{trouble}; images cannot be loaded")
        if self.images(facts):
            return None
        have = few([found.tags[name][7:19] if name in found.tags else ABSENT for name in self.names]) or ABSENT
        needed = _OF_UNPACKING * (self.artifact.size or 0)
        if needed > found.free:
            sentence = (
                f"`docker load` needs at least {shown_bytes(needed)}, but only {shown_bytes(found.free)} are free in"
                " Docker's data directory; free space with `docker image prune`"
            )
            return Refusal(what, have, want, "images-room", sentence)
        moved = tuple(
            f"the name {name} points to the image {found.tags[name][7:19]} now; if the archive has another image, the"
            " old one keeps its containers and loses the name"
            for name in self.names
            if name in found.tags
        )
        script = sh_file(
            __file__, "sh/load.sh", archive=host_path(self.artifact), record=self._record, names=self.names
        )
        step = Step(script, timeout_s=LOAD_TIMEOUT_S)
        return Change(what, have, want, (step,), artifacts=(self.artifact.name,), warnings=moved)

    def removal(self) -> tuple[Resource, ...]:
        return ()  # Containers may use the images, so removing the resource deletes no image.
