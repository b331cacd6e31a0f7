"""What operators should know of pages that have one name."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Facts, Planned, Probe, Resource


@dataclass(frozen=True, slots=True)
class SharedName(Resource):
    """The pages of these people have one name: nothing to change, and a note where there are several."""

    people: tuple[str, ...]

    def probes(self) -> tuple[Probe, ...]:
        return ()

    def plan(self, _facts: Facts) -> Planned | None:
        return None

    def notes(self, _facts: Facts) -> tuple[str, ...]:
        """That a browser does not keep them apart."""
        if len(self.people) < 2:
            return ()
        return (
            f"the pages of {', '.join(self.people)} have one name, so that a page of one can act as another who opens "
            "it while logged in; where they do not trust each other, give each a name (proxy_people_domain)",
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()
