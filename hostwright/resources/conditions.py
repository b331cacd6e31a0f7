"""States that hold on some hosts only, states that only a script can bring about, and conditions that refuse a host."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace

from hostwright.plan.model import Change, Condition, Facts, Planned, Probe, Refusal, Resource, Step
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.files import Absent


@dataclass(frozen=True, slots=True)
class When(Resource):
    """A resource is as wanted on those hosts on which a condition holds; on the others nothing is done.

    With it a role branches on the host and stays a function of its variables alone. The questions of both are asked of
    every host. When the role is removed, the resource is removed whether the condition still holds or not.

    >>> nouveau = When(Answers(Probe("lsmod | grep -q nouveau")), Absent("/etc/modules-load.d/nouveau.conf"))
    >>> print(plan_text(nouveau, {"lsmod": "", "test -e": ""}))
    ~ file /etc/modules-load.d/nouveau.conf: present → absent
    >>> print(plan_text(nouveau, {"test -e": ""}))
    nothing to do
    """

    condition: Condition  #: on which hosts
    resource: Resource  #: what is wanted of them

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
        return self.resource.removal()  # the condition was about having it, and may no longer hold

    def takes(self) -> frozenset[str]:
        return self.resource.takes()

    def sparing(self, wanted: Set[str], /) -> When | None:
        rest = self.resource.sparing(wanted)
        return replace(self, resource=rest) if rest else None


@dataclass(frozen=True, slots=True)
class Answers(Condition):
    """The condition that a probe's script succeeds on the host.

    >>> container = Answers(Probe("systemd-detect-virt --quiet --container"))
    >>> container.holds(facts_for(When(container, Absent("/etc/fstab")), {"--container": ""}))
    True
    """

    probe: Probe  #: the question; the answer is yes where its script exits with 0

    def probes(self) -> tuple[Probe, ...]:
        return (self.probe,)

    def holds(self, facts: Facts) -> bool:
        """Whether the probe's script succeeded."""
        return facts[self.probe].ok


@dataclass(frozen=True, slots=True)
class Differs(Condition):
    """The condition that at least one of some resources is not yet as wanted.

    >>> missing = Differs((Absent("/etc/old.conf"),))
    >>> missing.holds(facts_for(missing.resources, {"test -e": ""}))
    True
    """

    resources: tuple[Resource, ...]  #: the resources whose plans are looked at

    def probes(self) -> tuple[Probe, ...]:
        return tuple(probe for resource in self.resources for probe in resource.probes())

    def holds(self, facts: Facts) -> bool:
        """Whether at least one of them plans a change."""
        return any(resource.plan(facts) is not None for resource in self.resources)


@dataclass(frozen=True, slots=True)
class Script(Resource):
    """What no other resource expresses is done by commands, and a probe says whether they are due.

    The plan says that only the probe can tell whether the commands did what they should. A script whose probe still
    fails after them is planned again. When the role is removed, the files in ``leaves`` go; nothing else that the
    commands did is undone.

    >>> from hostwright.plan.model import Answer
    >>> firmware = Script("firmware", "version 1.2", Probe("bmc-firmware is 1.2"), "bmc-firmware flash 1.2")
    >>> print(plan_text(firmware, {"bmc-firmware": Answer(1, "version 1.1")}))
    ~ firmware: version 1.1 → version 1.2
      opaque: commands make it, and only its probe tells whether they did
    """

    what: str  #: what the plan calls it
    want: str = field(metadata=NO_IDENTITY)  #: the wanted state, in the words of the plan
    probe: Probe  #: exits with 0 when nothing is to be done; else its first line is shown as what the host has
    script: str  #: the commands, in POSIX sh with ``set -eu``, as root; they must be safe to run again after a cut
    #: a lock that is held on the host while they run: ``dpkg`` for what uses dpkg
    lock: str = field(default="", metadata=NO_IDENTITY)
    timeout_s: float = field(default=1800.0, metadata=NO_IDENTITY)  #: seconds after which the commands are ended
    artifacts: tuple[str, ...] = ()  #: names of the stack's files that must be on the host before
    #: files that the commands leave on the host and that nobody else writes
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
            warnings=("opaque: commands make it, and only its probe tells whether they did",),
        )

    def removal(self) -> tuple[Resource, ...]:
        return tuple(Absent(path, f"left by {self.what}") for path in self.leaves)


@dataclass(frozen=True, slots=True)
class Require(Resource):
    """A condition is met, without which the host must not be changed; else it is refused, and nothing is done to it.

    >>> from hostwright.plan.model import Answer
    >>> link = Require("InfiniBand link", Probe("ibstat -s"), "the InfiniBand link is down; check the cable")
    >>> print(plan_text(link, {"ibstat": Answer(1, "State: Down")}))
    ! InfiniBand link: State: Down → yes
      refused: the InfiniBand link is down; check the cable (State: Down)
    """

    what: str  #: what the plan calls it
    probe: Probe  #: exits with 0 when the condition is met; else its output is shown as what the host has
    #: the sentence for the operator: what is wrong, and what to do now; the output is added
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
