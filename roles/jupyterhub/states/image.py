"""The image of people's Jupyters: the one that the inventory names, with JupyterHub's part, built on the host."""

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
    """The name of the image that these texts make: another text is another image."""
    text = "\0".join(part for file in files for part in file)
    return f"{IMAGES}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class HubImage(Resource):
    """An image is on the host in which a person's Jupyter can ask the hub who comes.

    pip of the hub's own environment fetches the wheels, each by its hash, and the image is built without a network.
    """

    tag: str
    base: str  #: the image that it stands on
    files: tuple[tuple[str, str], ...] = field(metadata=NO_IDENTITY)  #: name and text of each
    requirements: tuple[tuple[str, str], ...] = field(metadata=NO_IDENTITY)  #: by the image's version of Python
    python: str = field(metadata=NO_IDENTITY)  #: the host's, whose pip fetches
    pull: bool = field(default=False, metadata=NO_IDENTITY)  #: whether the base may be pulled from its registry

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
                f"JupyterHub wants the image {self.base}, {absent_because(self.base)}, or let the host pull it "
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
        return ()  # with the servers: what a container uses cannot go before it
