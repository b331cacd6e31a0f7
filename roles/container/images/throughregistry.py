"""States for images that one host pushes to a registry, and that other hosts pull by digest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hostwright.resources import ABSENT, Change, Facts, Planned, Probe, Refusal, Resource, Step, few
from hostwright.roles import sh_file, shown_bytes
from hostwright.standard.roles.container.images.facts import CONTAINERD, IMAGES_PROBE, read_images
from hostwright.standard.roles.container.images.loaded import LOAD_TIMEOUT_S, UNKNOWN, LoadedImage
from hostwright.standard.roles.container.images.reference import HUB, read_image_name


def name_in(at: str, name: str) -> str:
    """Return the name in the registry ``at`` of the image ``name``, with the same path and tag.

    >>> name_in("reg01:5000", "ghcr.io/house/tool:1.2")
    'reg01:5000/house/tool:1.2'
    >>> name_in("reg01:5000", "debian:11")
    'reg01:5000/debian:11'
    """
    image = read_image_name(name)
    path = image.repository if image.registry in (HUB, "") else image.path
    return f"{at}/{path}:{image.tag}"


@dataclass(frozen=True, slots=True)
class PushedImage:
    """Image in a registry: its ID, a name, and its digest."""

    id: str
    name: str
    reference: str  #: image name with a digest, such as ``reg01:5000/tensorflow/tensorflow@sha256:…``


@dataclass(frozen=True, slots=True)
class ImagesPushed(Resource):
    """The registry ``at`` contains ``images``, which the host's Docker pushes."""

    at: str
    images: tuple[LoadedImage, ...]

    @property
    def _rows(self) -> list[tuple[str, str, str]]:
        return [(image.id, image.name, name_in(self.at, image.name)) for image in self.images]

    @property
    def pushed_probe(self) -> Probe:
        return Probe(sh_file(__file__, "sh/pushed.sh", at=self.at, images=_words(self._rows)), root=True)

    def probes(self) -> tuple[Probe, ...]:
        return (IMAGES_PROBE, self.pushed_probe)

    def pushed(self, facts: Facts) -> tuple[PushedImage, ...]:
        rows = [line.split() for line in facts[self.pushed_probe].text.splitlines()]
        asked = {(image.id, image.name) for image in self.images}
        return tuple(PushedImage(*row) for row in rows if len(row) == 3 and tuple(row[:2]) in asked)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_images(facts)
        what, want = f"registry {self.at}", few([image.name for image in self.images])
        if trouble := found.trouble or (CONTAINERD if found.store else ""):
            return Refusal(what, UNKNOWN, want, "images-docker", f"{trouble}; images cannot be pushed from this host")
        first: dict[str, tuple[str, str]] = {}
        for ident, name, in_registry in self._rows:
            of, other = first.setdefault(in_registry, (ident, name))
            if of != ident:
                sentence = (
                    f"{other} and {name} would have the same name in the registry, {in_registry}; rename one of them "
                    "(`docker tag`)"
                )
                return Refusal(what, UNKNOWN, want, "images-names", sentence)
        there = {(image.id, image.name) for image in self.pushed(facts)}
        missing = [row for row in self._rows if row[:2] not in there]
        if not missing:
            return None
        failing = sh_file(__file__, "sh/failing.sh", at=self.at)
        script = failing + sh_file(__file__, "sh/push.sh", at=self.at, images=_words(missing))
        return Change(what, "without these images from here", want, (Step(script, timeout_s=LOAD_TIMEOUT_S),))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # Hosts may still pull the images from the registry.


@dataclass(frozen=True, slots=True)
class ImagesPulled(Resource):
    """The host's Docker has ``images`` under their original names, pulled from the registry ``at`` by digest."""

    at: str
    images: tuple[PushedImage, ...]
    size: int

    def probes(self) -> tuple[Probe, ...]:
        return (IMAGES_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_images(facts)
        names = [image.name for image in self.images]
        what, want = f"image {few(names)}", few([image.id[7:19] for image in self.images])
        if trouble := found.trouble or (CONTAINERD if found.store else ""):
            return Refusal(what, UNKNOWN, want, "images-docker", f"{trouble}; images cannot be pulled")
        missing = [image for image in self.images if found.tags.get(image.name) != image.id]
        if not missing:
            return None
        known = {image.id for image in found.images}
        if self.size > found.free and any(image.id not in known for image in missing):
            sentence = (
                f"the images need {shown_bytes(self.size)}, but only {shown_bytes(found.free)} are free in Docker's"
                " data directory; free space with `docker image prune`"
            )
            return Refusal(what, ABSENT, want, "images-room", sentence)
        have = few([found.tags[image.name][7:19] if image.name in found.tags else ABSENT for image in missing])
        moved = tuple(
            f"the name {image.name} points to the image {found.tags[image.name][7:19]} now, which keeps its containers"
            " and loses the name"
            for image in missing
            if image.name in found.tags
        )
        failing = sh_file(__file__, "sh/failing.sh", at=self.at)
        rows = [(image.id, image.name, image.reference) for image in missing]
        script = failing + sh_file(__file__, "sh/pull.sh", at=self.at, images=_words(rows))
        return Change(what, have, want, (Step(script, timeout_s=LOAD_TIMEOUT_S),), warnings=moved)

    def removal(self) -> tuple[Resource, ...]:
        return ()  # Containers may use the images, so removing the resource deletes no image.


def _words(rows: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(" ".join(row) for row in rows)
