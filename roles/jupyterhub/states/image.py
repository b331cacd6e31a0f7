"""Image of users' Jupyter servers, built on the host from the inventory's image and JupyterHub's packages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from hostwright.resources import (
    ABSENT,
    MIRROR_TRIES,
    NO_IDENTITY,
    Change,
    Deferred,
    Facts,
    Planned,
    Probe,
    Refusal,
    Resource,
    Step,
)
from hostwright.roles import sh_file
from hostwright.standard.roles.container.images.reference import absent_because
from hostwright.standard.roles.jupyterhub.states.facts import IMAGES
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, read_workspaces


def tag_of(files: tuple[tuple[str, str], ...]) -> str:
    """Return the name of the image built from ``files``. The image's tag is a hash of the files' texts."""
    text = "\0".join(part for file in files for part in file)
    return f"{IMAGES}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class HubImage(Resource):
    """An image with JupyterHub's packages is on the host, so that Jupyter servers can authenticate users with the hub.

    The hub's pip downloads and verifies the wheels before the build, which has no network.
    """

    tag: str
    base: str
    files: tuple[tuple[str, str], ...] = field(metadata=NO_IDENTITY)
    #: pairs of Python version and pip's requirements for an image with that version
    requirements: tuple[tuple[str, str], ...] = field(metadata=NO_IDENTITY)
    python: str = field(metadata=NO_IDENTITY)  #: path of the host's Python with the pip that downloads the wheels
    pull: bool = field(default=False, metadata=NO_IDENTITY)  #: whether the host may pull the base image from a registry

    def probes(self) -> tuple[Probe, ...]:
        return (WORKSPACES_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_workspaces(facts)
        what, want = f"image {self.tag}", f"{self.base} with JupyterHub's part"
        if self.tag in found.images:
            return None
        if found.docker:
            return Deferred(what, f"Docker is {found.docker}", want, "Docker answers")
        if not found.image(self.base) and not self.pull:
            sentence = (
                f"JupyterHub needs the image {self.base}: {absent_because(self.base)}, or let the host pull it "
                "(jupyterhub_pull: true)"
            )
            return Refusal(what, ABSENT, want, "jupyterhub-image", sentence)
        script = sh_file(
            __file__, "sh/image.sh", tag=self.tag, base=self.base, pull="yes" if self.pull else "", python=self.python,
            files=[part for file in self.files for part in file],
            requirements=[part for each in self.requirements for part in each],
        )  # fmt: skip
        return Change(what, ABSENT, want, (Step(script, tries=MIRROR_TRIES),))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # Docker keeps an image that a container uses, so ``HubGone`` removes the containers first.
