"""The directory with people's files is one for these alone."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh_file
from hostwright.common.text import short
from hostwright.plan.model import Facts, Planned, Probe, Refusal, Resource


@dataclass(frozen=True, slots=True)
class PeoplesFiles:
    """A directory that is empty, not there yet, or has directories of people already."""

    directory: str

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh_file(__file__, "sh/foreign.sh", directory=self.directory), root=True),)

    def plan(self, facts: Facts) -> Planned | None:
        held = short(facts[self.probes()[0]].strip())
        if not held:
            return None
        sentence = (
            f"workspaces_directory: {self.directory} has {held!r} and nothing of workspaces: name a directory for "
            f"people's files alone, such as {self.directory}/workspaces"
        )
        return Refusal(
            f"directory {self.directory}", f"has {held}", "of people's files alone", "workspace-files", sentence
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()  # people's files stay
