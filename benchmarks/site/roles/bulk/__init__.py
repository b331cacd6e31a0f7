"""One large file: what the benchmark of file distribution brings to hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from hostwright.resources import Change, Facts, Probe, Resource, Step, host_path
from hostwright.roles import Artifact, RoleContext, role, sh

from .section import BulkSection


@dataclass(frozen=True, slots=True)
class Bulk:
    """Variables of the role ``bulk``."""

    path: str = "/opt/bulk/file"  #: where the file is


@dataclass(frozen=True, slots=True)
class Linked(Resource):
    """An artifact is at a path, as a second name of the file that the host verified when it came: no byte is copied."""

    KIND: ClassVar = "bulk-linked"

    path: str
    artifact: Artifact

    def probes(self) -> tuple[Probe, ...]:
        """Whether it is there; that it is whole was found out when it came."""
        return (Probe(sh("test -s %s", self.path), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        """The file is brought, and linked."""
        if facts[self.probes()[0]].ok:
            return None
        there = host_path(self.artifact)
        step = Step(sh("install -d %s && ln -f %s %s", self.path.rpartition("/")[0], there, self.path))
        return Change(f"file {self.path}", "absent", self.artifact.file, (step,), artifacts=(self.artifact.name,))

    def removal(self) -> tuple[Resource, ...]:
        """Nothing: the hosts of the benchmark are thrown away."""
        return ()


@role()
def bulk(v: Bulk, ctx: RoleContext) -> Iterator[Resource]:
    """The file that the stack's section names."""
    yield Linked(v.path, ctx.stack.artifact(ctx.section(BulkSection).artifact))
