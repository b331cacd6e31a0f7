"""The states ``When`` (for some hosts), ``Script`` (commands) and ``Require`` (refuses hosts), and conditions."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace

from hostwright.plan.model import Change, Condition, Facts, Planned, Probe, Refusal, Resource, Step
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.files import Absent


@dataclass(frozen=True, slots=True)
class When(Resource):
    """A resource is in the wanted state on hosts where a condition holds; other hosts are left unchanged.

    When the role is removed, the resource is removed even if the condition no longer holds.

    >>> nouveau = When(Answers(Probe("lsmod | grep -q nouveau")), Absent("/etc/modules-load.d/nouveau.conf"))
    >>> print(plan_text(nouveau, {"lsmod": "", "test -e": ""}))
    ~ file /etc/modules-load.d/nouveau.conf: present → absent
    >>> print(plan_text(nouveau, {"test -e": ""}))
    nothing to do
    """

    condition: Condition  #: condition that the host must meet for ``resource`` to apply
    resource: Resource  #: state of the host if the condition holds

    def probes(self) -> tuple[Probe, ...]:
        return (*self.condition.probes(), *self.resource.probes())

    def plan(self, facts: Facts) -> Planned | None:
        return self.resource.plan(facts) if self.condition.holds(facts) else None

    def users(self, facts: Facts) -> tuple[str, ...]:
        return self.resource.users(facts)

    def losses(self, facts: Facts) -> tuple[str, ...]:
        return self.resource.losses(facts)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        software = self.resource.software(facts)
        return software if software and self.condition.holds(facts) else ()

    def removal(self) -> tuple[Resource, ...]:
        return self.resource.removal()  # the condition may have held earlier, when the resource was applied

    def takes(self) -> frozenset[str]:
        return self.resource.takes()

    def sparing(self, wanted: Set[str], /) -> When | None:
        rest = self.resource.sparing(wanted)
        return replace(self, resource=rest) if rest else None


@dataclass(frozen=True, slots=True)
class Answers(Condition):
    """A condition that holds if a probe's script succeeds on the host.

    >>> container = Answers(Probe("systemd-detect-virt --quiet --container"))
    >>> container.holds(facts_for(When(container, Absent("/etc/fstab")), {"--container": ""}))
    True
    """

    probe: Probe  #: probe that exits with 0 if the condition holds

    def probes(self) -> tuple[Probe, ...]:
        return (self.probe,)

    def holds(self, facts: Facts) -> bool:
        return facts[self.probe].ok


@dataclass(frozen=True, slots=True)
class Differs(Condition):
    """A condition that holds if at least one of the given resources plans a change.

    >>> missing = Differs((Absent("/etc/old.conf"),))
    >>> missing.holds(facts_for(missing.resources, {"test -e": ""}))
    True
    """

    #: states whose planned changes count
    resources: tuple[Resource, ...]

    def probes(self) -> tuple[Probe, ...]:
        return tuple(probe for resource in self.resources for probe in resource.probes())

    def holds(self, facts: Facts) -> bool:
        return any(resource.plan(facts) is not None for resource in self.resources)


@dataclass(frozen=True, slots=True)
class Script(Resource):
    """Runs commands when a probe reports that they are needed. Use it only if no other resource fits.

    If the probe still fails after the commands, the commands are planned again. When the role is removed, the files in
    ``leaves`` are removed; other effects of the commands remain.

    >>> from hostwright.plan.model import Answer
    >>> firmware = Script("firmware", "version 1.2", Probe("bmc-firmware is 1.2"), "bmc-firmware flash 1.2")
    >>> print(plan_text(firmware, {"bmc-firmware": Answer(1, "version 1.1")}))
    ~ firmware: version 1.1 → version 1.2
      opaque: changed by a script; only its probe can verify the result
    """

    what: str  #: name of the state in the plan
    want: str = field(metadata=NO_IDENTITY)  #: description of the wanted state in the plan
    #: probe that exits with 0 if no commands are needed, and prints the current state as the first line
    probe: Probe
    #: POSIX shell commands that root runs with ``set -eu``, and that must be safe to repeat
    script: str
    #: lock to hold during the commands; ``dpkg`` for commands that use dpkg
    lock: str = field(default="", metadata=NO_IDENTITY)
    timeout_s: float = field(default=1800.0, metadata=NO_IDENTITY)  #: time limit of the commands in seconds
    artifacts: tuple[str, ...] = ()  #: names of the stack's artifacts that the commands read
    #: paths of files that the commands create and that no other state writes
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
            warnings=("opaque: changed by a script; only its probe can verify the result",),
        )

    def removal(self) -> tuple[Resource, ...]:
        return tuple(Absent(path, f"left by {self.what}") for path in self.leaves)


@dataclass(frozen=True, slots=True)
class Require(Resource):
    """A requirement that a host must meet before any change; a host that does not meet it is refused.

    >>> from hostwright.plan.model import Answer
    >>> link = Require("InfiniBand link", Probe("ibstat -s"), "the InfiniBand link is down; check the cable")
    >>> print(plan_text(link, {"ibstat": Answer(1, "State: Down")}))
    ! InfiniBand link: State: Down → yes
      refused: the InfiniBand link is down; check the cable (State: Down)
    """

    what: str  #: name of the requirement in the plan
    probe: Probe  #: probe that exits with 0 if the requirement is met, and prints the current state
    #: error text: the problem and the fix, followed by the probe's output
    otherwise: str = field(metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (self.probe,)

    def plan(self, facts: Facts) -> Refusal | None:
        answer = facts[self.probe]
        if answer.ok:
            return None
        output = " ".join(answer.strip().split())
        sentence = f"{self.otherwise} ({output})" if output else self.otherwise
        return Refusal(self.what, output or "no", "yes", "required", sentence)

    def removal(self) -> tuple[Resource, ...]:
        return ()
