"""What a host's Docker has: images with names, digests and dates, and the containers made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from hostwright.resources import Facts, Probe
from hostwright.roles import json_object, sh_file, whole

_IMAGE = {"id": ".Id", "created": ".Created", "size": ".Size", "tags": ".RepoTags", "digests": ".RepoDigests"}
_CONTAINER = {"name": ".Name", "image": ".Image", "state": ".State.Status", "created": ".Created"}
_UNKNOWN_BEFORE = datetime(1990, 1, 1, tzinfo=UTC)  #: builders that want equal bytes give images the year 0 or 1970


def _format(word: str, fields: dict[str, str]) -> str:
    return f"{word} {{" + ",".join(f'"{name}":{{{{json {place}}}}}' for name, place in fields.items()) + "}"


LOADS = "/var/lib/hostwright/images"  #: on a host: what archives gave its Docker, each under its checksum
IMAGES_PROBE = Probe(
    sh_file(
        __file__, "sh/facts.sh", image=_format("image", _IMAGE), container=_format("container", _CONTAINER), loads=LOADS
    ),
    root=True,
    cap_bytes=1024 * 1024,  # 1,000 images and as many containers
)


@dataclass(frozen=True, slots=True)
class HostImage:
    """An image as Docker has it. All of it is text of the host."""

    id: str
    created: str
    size: int
    tags: tuple[str, ...] | None
    digests: tuple[str, ...] | None = None

    def days(self, now: datetime) -> int | None:
        """How old it is; ``None`` where its builder gave it no date."""
        try:
            made = datetime.fromisoformat(self.created[:19]).replace(tzinfo=UTC)
        except ValueError:
            return None
        return max(0, (now - made).days) if made > _UNKNOWN_BEFORE else None


@dataclass(frozen=True, slots=True)
class HostContainer:
    """A container as Docker has it."""

    name: Annotated[str, Field(max_length=512)]
    image: str  #: the ID of its image
    state: str  #: Docker's word: ``running``, ``exited``, …
    created: str


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a host's Docker has; ``trouble`` says why nothing can be known or done, as the beginning of a sentence."""

    images: tuple[HostImage, ...] = ()
    containers: tuple[HostContainer, ...] = ()
    free: int = 0  #: bytes where Docker keeps images
    trouble: str = ""
    store: str = ""  #: where images have other IDs than in archives: whose they are
    tags: dict[str, str] = field(default_factory=dict)  #: each name with the ID that it leads to
    cut: tuple[str, ...] = ()  #: checksums of archives whose load was killed before its names were judged


_HOST_IMAGE, _HOST_CONTAINER = TypeAdapter(HostImage), TypeAdapter(HostContainer)
_TROUBLES = {"absent": "there is no Docker on this host", "silent": "Docker does not answer on this host"}
UNCLEAR = "what Docker has on this host cannot be understood"
CONTAINERD = (
    "Docker keeps its images in containerd's store on this host, where an image has another ID than in its archive"
)


def read_images(facts: Facts) -> ImageFacts:
    """The answer of a host to ``IMAGES_PROBE``."""
    answer = facts[IMAGES_PROBE]
    lines = [line.partition(" ")[::2] for line in answer.text.splitlines()]
    if answer.truncated or not lines or lines[-1][0] != "end":
        return ImageFacts(trouble="what Docker has on this host could not be read whole")
    words = dict(lines)
    if "docker" in words:
        return ImageFacts(trouble=_TROUBLES.get(words["docker"], _TROUBLES["silent"]))
    free = whole(words.get("free", "0"))
    try:
        images = tuple(_HOST_IMAGE.validate_python(json_object(rest)) for word, rest in lines if word == "image")
        containers = tuple(
            _HOST_CONTAINER.validate_python(json_object(rest)) for word, rest in lines if word == "container"
        )
    except ValidationError:
        return ImageFacts(trouble=UNCLEAR)
    if free is None:
        return ImageFacts(trouble=UNCLEAR)
    tags = {tag: image.id for image in images for tag in image.tags or ()}
    cut = tuple(rest for word, rest in lines if word == "cut")
    return ImageFacts(images, containers, free * 1024, "", words.get("store", ""), tags, cut)
