"""Images that hosts build for ssh workspaces from another image."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from hostwright.resources import (
    ABSENT,
    ERROR,
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
from hostwright.standard.roles.container.engine import NAME_SERVERS_SH
from hostwright.standard.roles.container.images.reference import absent_because
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, read_workspaces
from hostwright.standard.roles.workspaces.states.undeclared import BUILT


def tag_of(kind: str, files: tuple[tuple[str, str], ...]) -> str:
    """Return the image name for workspaces of the kind ``kind``. The image's tag is a hash of the build files."""
    text = "\0".join(part for file in files for part in file)
    return f"{BUILT}{kind}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class ImageBuilt(Resource):
    """The host has the image ``tag``, built from ``base`` with ``files``, which contain the date of the package
    updates.
    """

    tag: str
    base: str
    files: tuple[tuple[str, str], ...]  #: name and text of each file for the build of the image
    pull: bool = field(default=False, metadata=NO_IDENTITY)  #: whether the host may pull the base image

    def probes(self) -> tuple[Probe, ...]:
        return (WORKSPACES_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_workspaces(facts)
        what, want = f"image {self.tag}", f"built from {self.base}"
        if self.tag in found.images:
            return None
        if found.docker:
            return Deferred(what, found.trouble, want, "Docker answers")
        if not found.image(self.base) and not self.pull:
            sentence = f"{self.tag} is built from the image {self.base}: {absent_because(self.base)}"
            return Refusal(what, ABSENT, want, "workspace-image", sentence, alone=True)
        files = [part for file in self.files for part in file]
        script = NAME_SERVERS_SH + sh_file(
            __file__, "sh/build.sh", tag=self.tag, base=self.base, pull="yes" if self.pull else "", files=files,
            error=ERROR,
        )  # fmt: skip
        return Change(what, ABSENT, want, (Step(script, tries=MIRROR_TRIES),), alone=True)

    def removal(self) -> tuple[Resource, ...]:
        return ()
