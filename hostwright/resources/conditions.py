"""States that hold on some hosts only, states that only a script can bring about, and conditions that refuse a host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from hostwright.plan.model import Change, Facts, Planned, Probe, Refusal, Resource, Step, users_of
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.files import Absent


class Condition(Protocol):
    """A question about a host with yes or no for an answer, decided from facts."""

    def probes(self) -> tuple[Probe, ...]:
        """The questions whose answers ``holds`` reads."""
        ...

    def holds(self, facts: Facts) -> bool:
        """Whether it is so on this host."""
        ...


@dataclass(frozen=True, slots=True)
class When:
    """A resource for the hosts on which a condition holds; on the others there is nothing to do.

    With it a role branches on the host and stays a function of its variables alone, so that one exec channel can still
    ask every question of every role.
    """

    condition: Condition
    resource: Resource

    def probes(self) -> tuple[Probe, ...]:
        return (*self.condition.probes(), *self.resource.probes())

    def plan(self, facts: Facts) -> Planned | None:
        return self.resource.plan(facts) if self.condition.holds(facts) else None

    def users(self, facts: Facts) -> tuple[str, ...]:
        return users_of(self.resource, facts)

    def removal(self) -> tuple[Resource, ...]:
        return self.resource.removal()  # the condition was about having it, and may no longer hold


@dataclass(frozen=True, slots=True)
class Answers:
    """The condition that a probe exits with 0."""

    probe: Probe

    def probes(self) -> tuple[Probe, ...]:
        return (self.probe,)

    def holds(self, facts: Facts) -> bool:
        """Whether the probe's script succeeded."""
        return facts[self.probe].ok


@dataclass(frozen=True, slots=True)
class Differs:
    """The condition that one of these resources is not as desired yet."""

    resources: tuple[Resource, ...]

    def probes(self) -> tuple[Probe, ...]:
        return tuple(probe for resource in self.resources for probe in resource.probes())

    def holds(self, facts: Facts) -> bool:
        """Whether at least one of them plans a change."""
        return any(resource.plan(facts) is not None for resource in self.resources)


@dataclass(frozen=True, slots=True)
class Script:
    """What cannot be expressed as a state of its own: commands, and the probe that tells whether they are due.

    The probe exits with 0 when nothing is to be done; what it prints otherwise is shown as ``have``. ``leaves`` are the
    files that the commands leave on the host and that nobody else writes.
    """

    what: str
    want: str = field(metadata=NO_IDENTITY)
    probe: Probe
    script: str
    lock: str = field(default="", metadata=NO_IDENTITY)
    timeout_s: float = field(default=1800.0, metadata=NO_IDENTITY)
    artifacts: tuple[str, ...] = ()
    leaves: tuple[str, ...] = field(default=(), metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (self.probe,)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probe]
        if answer.ok:
            return None
        lines = answer.strip().splitlines()
        return Change(
            self.what,
            lines[0] if lines else "no",
            self.want,
            (Step(self.script, self.lock, self.timeout_s),),
            artifacts=self.artifacts,
            opaque=True,
        )

    def removal(self) -> tuple[Resource, ...]:
        return tuple(Absent(path, f"left by {self.what}") for path in self.leaves)


@dataclass(frozen=True, slots=True)
class Require:
    """A condition without which the host must not be touched. The probe exits with 0 when it is met.

    ``otherwise`` is the sentence for the operator: what is wrong, and what to do now. What the probe prints is added.
    """

    what: str
    probe: Probe
    otherwise: str = field(metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (self.probe,)

    def plan(self, facts: Facts) -> Refusal | None:
        answer = facts[self.probe]
        if answer.ok:
            return None
        said = " ".join(answer.strip().split())
        sentence = f"{self.otherwise} ({said})" if said else self.otherwise
        return Refusal(self.what, said or "no", "yes", "required", sentence)

    def removal(self) -> tuple[Resource, ...]:
        return ()
