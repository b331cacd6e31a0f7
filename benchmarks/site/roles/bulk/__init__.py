"""Role that puts one large file on hosts, for the benchmark of copying."""

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

    path: str = "/opt/bulk/file"  #: path of the file


@dataclass(frozen=True, slots=True)
class Linked(Resource):
    """The file ``artifact`` is at ``path``, as a hard link to the copy that the host verified on arrival."""

    KIND: ClassVar = "bulk-linked"

    path: str
    artifact: Artifact

    def probes(self) -> tuple[Probe, ...]:
        """Return a probe that checks for a non-empty file at ``path``."""
        return (Probe(sh("test -s %s", self.path), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        """Return a change that delivers and links a missing file."""
        if facts[self.probes()[0]].ok:
            return None
        there = host_path(self.artifact)
        step = Step(sh("install -d %s && ln -f %s %s", self.path.rpartition("/")[0], there, self.path))
        return Change(f"file {self.path}", "absent", self.artifact.file, (step,), artifacts=(self.artifact.name,))

    def removal(self) -> tuple[Resource, ...]:
        """Return nothing, because the benchmark deletes the hosts."""
        return ()


@role()
def bulk(v: Bulk, ctx: RoleContext) -> Iterator[Resource]:
    """The file that the stack names in the section ``bulk`` is at ``v.path``."""
    yield Linked(v.path, ctx.stack.artifact(ctx.section(BulkSection).artifact))
