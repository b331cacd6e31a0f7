"""Names of the system's alternatives as they were before."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh_file
from hostwright.plan.model import Change, Facts, Probe, RemovalState, Step
from hostwright.resources import originals
from hostwright.resources.files.aside import OLDEST_BACK
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.packages.dpkg import DPKG_LOCK


def settings_of(name: str) -> tuple[str, str]:
    """The file with a name's choices and whether one was set by hand, and the link to the current choice."""
    return f"/var/lib/dpkg/alternatives/{name}", f"/etc/alternatives/{name}"


@dataclass(frozen=True, slots=True)
class AlternativeGone(RemovalState):
    """A name of the system's alternatives does not have the choice ``target``, unless it had it before Hostwright came.

    The name leads where it led before Hostwright's first change, if that is still a choice, else where the system
    chooses. A link of others that was not an alternative, and anything moved aside, comes back if its place is free.
    """

    link: str  #: the path that users use (``/usr/bin/NAME``)
    name: str  #: of the alternative
    target: str  #: the choice that is removed: the path that it leads to

    def probes(self) -> tuple[Probe, ...]:
        return (
            Probe(
                sh_file(
                    __file__,
                    "sh/alternative_gone_probe.sh",
                    name=self.name,
                    link=self.link,
                    target=self.target,
                    kept=originals.kept(self.link),
                    chosen=settings_of(self.name)[1],
                    mark=originals.written(self.link),
                    record=f"{originals.ORIGIN}/packages",
                ),
                root=True,
            ),
        )

    def plan(self, facts: Facts) -> Change | None:
        states = set(facts[self.probes()[0]].text.split())
        if not states & {"registered", "kept", "aside"}:
            return None
        have = f"{self.target} is a choice" if "registered" in states else ABSENT
        step = Step(self._script(), DPKG_LOCK)
        return Change(f"alternative {self.link}", have, f"as before, without {self.target}", (step,))

    def _script(self) -> str:
        choices, chosen = settings_of(self.name)
        take = sh_file(
            __file__,
            "sh/alternative_gone.sh",
            name=self.name,
            link=self.link,
            target=self.target,
            choices=choices,
            chosen=chosen,
            kept_choices=originals.kept(choices),
            kept_chosen=originals.kept(chosen),
            kept_link=originals.kept(self.link),
        )
        return OLDEST_BACK + originals.FORGET + take
