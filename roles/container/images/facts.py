"""Images and containers of a host's Docker, with names, digests and dates."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from hostwright.resources import Facts, Probe
from hostwright.roles import json_object, sh_file, whole

_IMAGE = {"id": ".Id", "created": ".Created", "size": ".Size", "tags": ".RepoTags", "digests": ".RepoDigests"}
_CONTAINER = {"name": ".Name", "image": ".Image", "state": ".State.Status", "created": ".Created"}
#: earliest plausible build date of an image. Reproducible builds set the year 0 or 1970.
_UNKNOWN_BEFORE = datetime(1990, 1, 1, tzinfo=UTC)


def _format(word: str, fields: dict[str, str]) -> str:
    return f"{word} {{" + ",".join(f'"{name}":{{{{json {place}}}}}' for name, place in fields.items()) + "}"


#: directory on a host with one list of images per archive. The name of a list is the archive's checksum.
LOADS = "/var/lib/hostwright/images"
IMAGES_PROBE = Probe(
    sh_file(
        __file__, "sh/facts.sh", image=_format("image", _IMAGE), container=_format("container", _CONTAINER), loads=LOADS
    ),
    root=True,
    cap_bytes=1024 * 1024,  # The limit suffices for 1,000 images and 1,000 containers.
)


@dataclass(frozen=True, slots=True)
class HostImage:
    """Image in a host's Docker. All values come from the host and are untrusted."""

    id: str
    created: str
    size: int
    tags: tuple[str, ...] | None
    digests: tuple[str, ...] | None = None

    def days(self, now: datetime) -> int | None:
        """Return the image's age in days; ``None`` without a date."""
        try:
            made = datetime.fromisoformat(self.created[:19]).replace(tzinfo=UTC)
        except ValueError:
            return None
        return max(0, (now - made).days) if made > _UNKNOWN_BEFORE else None


@dataclass(frozen=True, slots=True)
class HostContainer:
    """Container in a host's Docker."""

    name: Annotated[str, Field(max_length=512)]
    image: str
    state: str  #: Docker's state of the container, such as ``running`` or ``exited``
    created: str


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Images and containers of a host's Docker. If they are unknown, ``trouble`` has the reason."""

    images: tuple[HostImage, ...] = ()
    containers: tuple[HostContainer, ...] = ()
    free: int = 0  #: free bytes in Docker's data directory
    trouble: str = ""
    store: str = ""  #: name of Docker's image store if the store's image IDs differ from those in archives
    tags: dict[str, str] = field(default_factory=dict)  #: image name → image ID
    cut: tuple[str, ...] = ()  #: checksums of archives whose load was killed before a check of the image names


_HOST_IMAGE, _HOST_CONTAINER = TypeAdapter(HostImage), TypeAdapter(HostContainer)
_TROUBLES = {"absent": "this host has no Docker", "silent": "Docker does not respond on this host"}
UNCLEAR = "Docker's output on this host is invalid"
CONTAINERD = "Docker uses containerd's image store on this host, in which image IDs differ from those in archives"


def read_images(facts: Facts) -> ImageFacts:
    """Parse the output of ``IMAGES_PROBE``."""
    answer = facts[IMAGES_PROBE]
    lines = [line.partition(" ")[::2] for line in answer.text.splitlines()]
    if answer.truncated or not lines or lines[-1][0] != "end":
        return ImageFacts(trouble="Docker's output on this host is incomplete")
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
