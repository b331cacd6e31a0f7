"""The nouns: what is asked (Probe), what is answered (Answer, Facts), what shall be (Resource), what differs (Planned).

All of them are values. None of them does I/O; a resource is tested by calling it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import Field, TypeAdapter

PROBE_CAP_BYTES = 64 * 1024  #: an answer's default cap, so that a small text file comes back whole


@dataclass(frozen=True, slots=True)
class Probe:
    """One read-only question in POSIX sh. Equal probes are asked once a host.

    ``script`` runs in a subshell with no standard input and its standard error thrown away; ``root`` asks it under
    sudo; ``cap_bytes`` bounds what comes back.
    """

    script: str
    root: bool = False
    cap_bytes: int = PROBE_CAP_BYTES


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host said to one probe: exit status, output (untrusted text), and whether the cap cut it."""

    status: int
    text: str
    truncated: bool = False

    @property
    def ok(self) -> bool:
        """Whether the script exited with 0."""
        return self.status == 0

    def strip(self) -> str:
        """The output without white space at its ends."""
        return self.text.strip()


class Facts(Mapping[Probe, Answer]):
    """The answers of one host to the probes of one observation. Asking for an unasked probe is a ``KeyError``."""

    __slots__ = ("_answers",)

    def __init__(self, answers: Mapping[Probe, Answer]):
        self._answers = dict(answers)

    def __getitem__(self, probe: Probe) -> Answer:
        return self._answers[probe]

    def __iter__(self) -> Iterator[Probe]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a change, as it will run on the host, as root, in POSIX sh with ``set -eu``.

    ``lock`` names a lock on the host that is held while it runs: steps that use dpkg all say ``"dpkg"``.
    ``timeout_s`` bounds each try of it on the host itself. ``tries`` is how often it is run in all as long as what it
    fails for is transient (a mirror, a lock of apt's); 1 for a step that is not safe to repeat in the same state.
    """

    script: str
    lock: str = ""
    timeout_s: float = 1800.0
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Change:
    """What differs and how it is mended: ``steps``, of which there is one at least, are exactly what apply runs.

    ``artifacts`` are the names of the stack's files that must lie on the host before. ``opaque`` marks a change whose
    effect only its own probe can tell. ``disturbs`` says what it does to running work ("replaces the driver"), or is
    empty when nobody notices: such a change waits for an idle host (``hostwright.apply.disturb.draining``). A host
    that must be rebooted after the steps says so at the next look, with a ``Reboot``.
    """

    kind: Literal["change"] = field(default="change", kw_only=True)
    what: str
    have: str
    want: str
    steps: tuple[Step, ...]
    diff: str = ""
    artifacts: tuple[str, ...] = ()
    opaque: bool = False
    disturbs: str = ""

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError(f"a change without steps: {self.what}")


@dataclass(frozen=True, slots=True)
class Reboot:
    """What differs, and is as wanted only once the host was rebooted; ``reason`` is why, in the words of a sentence."""

    kind: Literal["reboot"] = field(default="reboot", kw_only=True)
    what: str
    have: str
    want: str
    reason: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """What differs, and can be planned only after something else, which ``until`` names ("reboot").

    ``artifacts`` are the stack's files that it will take: that one is missing must be known before the host is touched.
    """

    kind: Literal["deferred"] = field(default="deferred", kw_only=True)
    what: str
    have: str
    want: str
    until: str
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """What differs on a host that must not be touched at all: ``rule`` forbids it, ``sentence`` tells the operator."""

    kind: Literal["refusal"] = field(default="refusal", kw_only=True)
    what: str
    have: str
    want: str
    rule: str
    sentence: str


#: What a state plans where the host is not as desired. Of these only a change has anything to run.
Planned: TypeAlias = Change | Reboot | Deferred | Refusal


@runtime_checkable
class Resource(Protocol):
    """One desired state of a host: pure methods and nothing else.

    One whose change would hit work that only it knows of has a further method (``HasUsers``).
    """

    def probes(self) -> tuple[Probe, ...]:
        """The questions whose answers ``plan`` reads."""
        ...

    def plan(self, facts: Facts) -> Planned | None:
        """What brings the host to this state, or stands before it; ``None`` when the host is there already."""
        ...

    def removal(self) -> tuple[Resource, ...]:
        """The states of a host from which this one was taken away, in the order in which they are brought about.

        Empty where nothing of it stays behind. What was there before, and what others put there, stays.
        """
        ...


@runtime_checkable
class HasUsers(Protocol):
    """A resource that knows who uses what it would change, whether they use a GPU or not."""

    def users(self, facts: Facts) -> tuple[str, ...]:
        """Who uses it now, in the words of a sentence: ``python3 (4711)``. Reads the answers that ``plan`` reads."""
        ...


def users_of(resource: Resource, facts: Facts) -> tuple[str, ...]:
    """Who uses what a resource would change; nobody, unless it says otherwise (``HasUsers``)."""
    return resource.users(facts) if isinstance(resource, HasUsers) else ()


@dataclass(frozen=True, slots=True)
class RolePlan:
    """What the states of one role plan on one host, in order."""

    role: str
    needs: tuple[str, ...] = ()
    changes: tuple[Annotated[Planned, Field(discriminator="kind")], ...] = ()

    @property
    def steps(self) -> tuple[tuple[Change, Step], ...]:
        """Every step with the change it belongs to, in the order in which apply runs them."""
        return tuple((change, step) for change in self.changes if isinstance(change, Change) for step in change.steps)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The names of the stack's files that it takes, each once."""
        found = (planned.artifacts for planned in self.changes if isinstance(planned, Change | Deferred))
        return tuple(dict.fromkeys(name for names in found for name in names))


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands between one host and its stack. Empty when the host is as desired.

    A plan is a pure function of the host's facts, so a saved plan is stale exactly when the plan made of fresh facts
    is not equal to it. What comes and goes (running work, locks) stands beside it, in ``planning.HostPlan``.

    >>> change = Change("file /etc/motd", "absent", "644 root root", (Step("touch /etc/motd"),))
    >>> reboot = Reboot("kernel", "5.4.0", "5.15.0", "5.15.0 is installed")
    >>> plan = Plan("gpu01", "house", (RolePlan("base", (), (change, reboot)),))
    >>> plan.empty, plan.reboot, plan.disturbs
    (False, '5.15.0 is installed', 'reboots the host')
    >>> Plan.from_json(plan.to_json()) == plan
    True
    """

    host: str
    stack: str
    roles: tuple[RolePlan, ...] = ()

    @property
    def changes(self) -> tuple[Planned, ...]:
        """All that the states of all roles plan."""
        return tuple(change for role in self.roles for change in role.changes)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The names of the stack's files that it takes, each once."""
        return tuple(dict.fromkeys(name for role in self.roles for name in role.artifacts))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.changes

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the host must not be touched, if so."""
        return tuple(planned.sentence for planned in self.changes if isinstance(planned, Refusal))

    @property
    def reboot(self) -> str:
        """The reasons for a reboot, joined; empty when none is wanted."""
        return "; ".join(dict.fromkeys(planned.reason for planned in self.changes if isinstance(planned, Reboot)))

    @property
    def disturbs(self) -> str:
        """What applying this plan does to running work, a reboot included; empty when nobody notices."""
        reasons = [planned.disturbs for planned in self.changes if isinstance(planned, Change) and planned.disturbs]
        return "; ".join(dict.fromkeys([*reasons, *(["reboots the host"] if self.reboot else [])]))

    def without_reboots(self) -> Plan:
        """The plan of a host that must not be rebooted: what is left to be applied to it."""
        kept = (
            replace(role, changes=tuple(planned for planned in role.changes if not isinstance(planned, Reboot)))
            for role in self.roles
        )
        return replace(self, roles=tuple(kept))

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values, for files, journals and machines."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """The inverse of ``to_json``. Raises ``ValueError`` for anything that is no plan, or an older version's."""
        return _saved_plan().validate_json(json.dumps(data), strict=True)


@cache
def _saved_plan() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)


@dataclass(frozen=True, slots=True)
class StepResult:
    """How one step went: place in the program, exit status (``None`` while it runs), seconds, output, tries."""

    number: int
    what: str
    status: int | None = None
    duration_s: float = 0.0
    output: str = ""
    tries: int = 1


@dataclass(frozen=True, slots=True)
class RoleResult:
    """How one role's program went on one host."""

    role: str
    status: int
    duration_s: float
    steps: tuple[StepResult, ...] = field(default=())
