"""The images of an archive are in a host's Docker: the state that ``images.push`` brings hosts to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hostwright.resources import ABSENT, Change, Facts, Planned, Probe, Refusal, Resource, Step, few, host_path
from hostwright.roles import Artifact, sh, sh_file, shown_bytes
from hostwright.standard.roles.container.images.archives.contents import Contents
from hostwright.standard.roles.container.images.archives.parts import ArchivedImage
from hostwright.standard.roles.container.images.look import CONTAINERD, LOOK, read_look

LOAD_TIMEOUT_S = 2 * 3600.0  #: 20 GB on a worn-out disk
UNKNOWN = "unknown"
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9._+-]+")


def artifact_of(contents: Contents) -> Artifact:
    """The archive as a file that hosts get: under its checksum, and under a name that says what it is."""
    tag, archive = contents.images[0].tags[0], contents.archive
    file = f"image-{_NO_FILE_NAME.sub('-', tag)[:100]}.tar"
    return Artifact(name="image-archive", file=file, sha256=archive.sha256, size=archive.size)


@dataclass(frozen=True, slots=True)
class ImagesLoaded(Resource):
    """Docker has these images under their names, from an archive that a host gets only where one is missing."""

    artifact: Artifact
    images: tuple[ArchivedImage, ...]
    unpacked: int  #: bytes that the images take at least
    packed: bool
    end: int
    manifest: str

    @classmethod
    def of(cls, contents: Contents) -> ImagesLoaded:
        """The state that an archive's images are there."""
        archive = contents.archive
        artifact = artifact_of(contents)
        return cls(artifact, contents.images, contents.unpacked, archive.packed, archive.end, contents.manifest)

    def probes(self) -> tuple[Probe, ...]:
        return (LOOK,)

    def plan(self, facts: Facts) -> Planned | None:
        look = read_look(facts)
        names = [(image.id, tag) for image in self.images for tag in image.tags]
        what, want = f"image {few([tag for _, tag in names])}", few([image.id[7:19] for image in self.images])
        if trouble := look.trouble or (CONTAINERD if look.store else ""):
            return Refusal(what, UNKNOWN, want, "images-docker", f"{trouble}: no image can be brought to it")
        missing = [(id_, tag) for id_, tag in names if look.tags.get(tag) != id_]
        if not missing:
            return None
        have = few([look.tags[tag][7:19] if tag in look.tags else ABSENT for _, tag in missing])
        moved = tuple(
            f"the name {tag} leads to the image {look.tags[tag][7:19]} now, which keeps its containers and loses it"
            for _, tag in missing
            if tag in look.tags
        )
        if {id_ for id_, _ in missing} <= {image.id for image in look.images}:
            script = "\n".join(sh("docker tag %s %s", id_, tag) for id_, tag in missing)
            return Change(what, have, want, (Step(script),), warnings=moved)
        needed = self.unpacked + self.end  # Docker unpacks the archive there first
        if needed > look.free:
            sentence = (
                f"`docker load` takes {shown_bytes(needed)}, and "
                f"{shown_bytes(look.free)} are free where Docker keeps images: make room (`docker image prune`)"
            )
            return Refusal(what, have, want, "images-room", sentence)
        step = Step(self._load(names), timeout_s=LOAD_TIMEOUT_S)
        return Change(what, have, want, (step,), artifacts=(self.artifact.name,), warnings=moved)

    def _load(self, names: list[tuple[str, str]]) -> str:
        return sh_file(
            __file__,
            "sh/load.sh",
            archive=host_path(self.artifact),
            packed="yes" if self.packed else "",
            end=self.end,
            manifest=self.manifest,
            images=tuple(f"{id_} {tag}" for id_, tag in names),
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()  # an image is somebody's work, and `docker image prune` knows which nobody uses
