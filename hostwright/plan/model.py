"""The values of planning: a ``Probe`` asks a host, ``Facts`` are its answers (``plan.facts``), a ``Resource`` is a
desired state, and ``Planned`` is what differs from it. None of them does I/O, so a resource is tested by calling it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field

from hostwright.common.input.adapter import adapter
from hostwright.common.text import count
from hostwright.plan.facts import PROBE_CAP_BYTES, Answer, Facts, Pass, PassPart, Probe

if TYPE_CHECKING:
    from hostwright.plan.roles.software import Software
    from hostwright.stack.stack import Artifact, RoleFile
    from hostwright.stack.store.debs import PackageMirror

__all__ = [
    "PROBE_CAP_BYTES", "Answer", "Change", "Condition", "Deferred", "Facts", "Pass", "PassPart", "Plan", "Planned",
    "Probe", "Reboot", "Refusal", "Resource", "RetryRule", "RolePlan", "RoleResult", "Step", "StepResult",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a change, which runs on the host as root, in POSIX sh with ``set -eu``.

    ``lock`` names a lock on the host that is held while it runs; every step that uses dpkg gives ``"dpkg"``.
    ``timeout_s`` bounds each try. ``tries`` is how often it is run in all while it fails for something transient (a
    mirror, apt's lock); 1 for a step that is not safe to repeat.
    """

    script: str
    lock: str = ""
    timeout_s: float = 1800.0
    tries: int = 1


@dataclass(frozen=True, slots=True)
class RetryRule:
    """What a line of a failed step's output says about another try: what it names ``passes``, or no retry mends it.
    ``untrusted.Pattern`` and ``grep -P`` read both patterns alike: a line with ``unless`` in it says nothing.
    """

    pattern: str
    passes: bool
    unless: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Something differs, and ``steps`` correct it: at least one, and exactly what apply runs.

    ``artifacts`` are the names of the stack's files that must be on the host first. If one that is ``alone`` fails, the
    further changes of its role are made all the same, and the run fails at its end. ``disturbs`` says what it does to
    running work ("replaces the driver"), else it is empty; a change that disturbs waits for an idle host
    (``hostwright.apply.disturb.draining``). ``warnings`` are what an operator should know of it, a sentence each. If
    the host must be rebooted after the steps, the next plan has a ``Reboot``.
    """

    kind: Literal["change"] = field(default="change", kw_only=True)
    what: str
    have: str
    want: str
    steps: tuple[Step, ...]
    diff: str = ""
    artifacts: tuple[str, ...] = ()
    alone: bool = False
    disturbs: str = ""
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError(f"a change without steps: {self.what}")


@dataclass(frozen=True, slots=True)
class Reboot:
    """Something differs until the host is rebooted; ``reason`` says why, as a part of a sentence."""

    kind: Literal["reboot"] = field(default="reboot", kw_only=True)
    what: str
    have: str
    want: str
    reason: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """Something differs, and how to correct it is known only after something else, which ``until`` names ("reboot").

    ``artifacts`` are the stack's files that it will need, so that a missing one is noticed before the host is touched.
    """

    kind: Literal["deferred"] = field(default="deferred", kw_only=True)
    what: str
    have: str
    want: str
    until: str
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """The host must not be changed at all: ``rule`` forbids it, and ``sentence`` tells the operator why.

    One that is ``alone`` forbids no other change: those are made, and the run fails at its end with the sentence.
    """

    kind: Literal["refusal"] = field(default="refusal", kw_only=True)
    what: str
    have: str
    want: str
    rule: str
    sentence: str
    alone: bool = False


#: What a state plans where the host is not as desired. Of these only a change has anything to run.
Planned: TypeAlias = Change | Reboot | Deferred | Refusal


class Resource(ABC):
    """One desired state of a host: a frozen dataclass that derives from this class. Its methods are pure.

    Every state has ``probes``, ``plan`` and ``removal``. A state overrides another method only if it has something to
    report there. All methods that take facts read the same answers as ``plan``.
    """

    __slots__ = ()

    @abstractmethod
    def probes(self) -> tuple[Probe, ...]:
        """The questions whose answers ``plan`` reads."""

    @abstractmethod
    def plan(self, facts: Facts) -> Planned | None:
        """What brings the host to this state or keeps it from it; ``None`` if the host is in this state."""

    @abstractmethod
    def removal(self) -> tuple[Resource, ...]:
        """The desired states of a host without this one, in the order in which they are reached.

        Empty if nothing of it is left behind. What was there before, and what others put there, stays.
        """

    def takes(self) -> frozenset[str]:
        """What this removal deletes and another role may share, by name: ``package gcc``, ``file /etc/motd``."""
        return frozenset()

    def sparing(self, wanted: Set[str], /) -> Self | None:
        """This removal without what other roles want (names as in ``takes``); ``None`` if nothing is left to delete."""
        return None if self.takes() and self.takes() <= wanted else self

    def users(self, _facts: Facts, /) -> tuple[str, ...]:
        """Running work that its change would disturb, whether it uses a GPU or not, such as ``python3 (4711)``."""
        return ()

    def losses(self, _facts: Facts, /) -> tuple[str, ...]:
        """What its change would delete permanently, as objects ("the driver"): an operator must agree (``--yes``)."""
        return ()

    def notes(self, _facts: Facts, /) -> tuple[str, ...]:
        """Sentences that an operator should read of the host, whether or not anything differs."""
        return ()

    def software(self, _facts: Facts, /) -> tuple[Software, ...]:
        """The software of this state that is on the host, or is missing, for SBOMs."""
        return ()

    def role_files(self) -> tuple[RoleFile, ...]:
        """Files that no stack names and that its changes may name among their artifacts, on whatever host."""
        return ()

    def role_files_for(self, _facts: Facts | None, /) -> tuple[RoleFile, ...]:
        """Those of ``role_files`` that a host with these facts takes; without facts, all that it may take.

        Raises ``ArtifactError`` if it takes one that nobody can name.
        """
        return ()

    def packages_for(self, _facts: Facts | None, /) -> tuple[str, ...]:
        """The distribution's packages that a host with these facts then has, ``name`` or ``name=version``, whether they
        are there or not; without facts, those that every host has."""
        return ()

    def from_mirror(self, _mirror: PackageMirror, /) -> Self:
        """The same state, which takes the distribution's packages from the mirror."""
        return self

    def repositories(self) -> Mapping[str, Artifact]:
        """The repositories that it puts on the host's own disk: the package file of each, by its source list."""
        return {}

    def archive_components(self) -> tuple[str, ...]:
        """The components of the distribution's archive, such as ``non-free``, in which its packages lie."""
        return ()

    def packages_from(self, _list_file: str, /) -> tuple[str, ...]:
        """The packages that it installs from this source list, ``name`` or ``name=version``."""
        return ()


class RemovalState(Resource):
    """A state that only the ``removal()`` of other states yields; nothing is left to remove of it."""

    __slots__ = ()

    def removal(self) -> tuple[Resource, ...]:
        return ()


class ReturnState(RemovalState):
    """A removal that brings back what was there before; who provisions the host right afterwards does without it."""

    __slots__ = ()


class Condition(ABC):
    """A question about a host with yes or no for an answer: a frozen dataclass that derives from this class."""

    __slots__ = ()

    @abstractmethod
    def probes(self) -> tuple[Probe, ...]:
        """The questions whose answers ``holds`` reads."""

    @abstractmethod
    def holds(self, facts: Facts) -> bool:
        """Whether it is so on this host."""

    def users(self, _facts: Facts, /) -> tuple[str, ...]:
        """Running work that a change under this condition would disturb."""
        return ()


GONE = ("absent", "as before")  #: how the ``want`` of what takes something away begins
_NOUNS = ("refusal", "change", "removal")


def tally(planned: Iterable[tuple[str, str]]) -> str:
    """What is planned in numbers, refusals and removals counted as such; ``planned`` are pairs of kind and ``want``.

    >>> tally([("change", "644 root:root"), ("change", "absent"), ("reboot", "5.15.0"), ("refusal", "off")])
    '1 refusal, 2 changes, 1 removal'
    >>> tally([("change", "in order (tool-2 unpacked again or, if no repository has it, removed)")])
    '1 removal'
    """
    numbers = Counter(
        "refusal" if kind == "refusal" else "removal" if kind == "change" and _removes(want) else "change"
        for kind, want in planned
    )
    return ", ".join(count(numbers[noun], noun) for noun in _NOUNS if numbers[noun])


def _removes(want: str) -> bool:
    """Whether a change takes something away: all that it is about, or packages beside it, which it names."""
    return want.startswith(GONE) or (want.startswith("in order (") and " removed" in want)


@dataclass(frozen=True, slots=True)
class RolePlan:
    """What is planned for one role on one host, in order."""

    role: str
    needs: tuple[str, ...] = ()
    changes: tuple[Annotated[Planned, Field(discriminator="kind")], ...] = ()

    @property
    def tally(self) -> str:
        """What is planned, in numbers: ``3 changes, 1 removal``."""
        return tally((planned.kind, planned.want) for planned in self.changes)

    @property
    def steps(self) -> tuple[tuple[Change, Step], ...]:
        """Every step with the change it belongs to, in the order in which apply runs them."""
        return tuple((change, step) for change in self.changes if isinstance(change, Change) for step in change.steps)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The names of the stack's files that it takes, each once."""
        named = (planned.artifacts for planned in self.changes if isinstance(planned, Change | Deferred))
        return tuple(dict.fromkeys(name for names in named for name in names))


@dataclass(frozen=True, slots=True)
class Plan:
    """The differences between one host and its stack. Empty if the host is as desired.

    A plan is a pure function of the host's facts, so a saved plan is stale exactly if the plan made of fresh facts
    is not equal to it. What an operator should know besides, such as running work, is in ``planning.HostPlan``.

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
    def tally(self) -> str:
        """All that is planned, in numbers: ``3 changes, 1 removal``; empty for an empty plan."""
        return tally((planned.kind, planned.want) for planned in self.changes)

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
        """The reasons why the host must not be changed, if there are any; those that stand alone wait for the rest."""
        refused = [planned for planned in self.changes if isinstance(planned, Refusal)]
        rest = any(isinstance(planned, Change | Reboot) for planned in self.changes)
        if rest and all(refusal.alone for refusal in refused):
            return ()
        return tuple(refusal.sentence for refusal in refused)

    @property
    def reboot(self) -> str:
        """The reasons for a reboot, joined; empty when none is wanted."""
        return "; ".join(dict.fromkeys(planned.reason for planned in self.changes if isinstance(planned, Reboot)))

    @property
    def disturbs(self) -> str:
        """What applying this plan does to running work, including a reboot; empty if it disturbs nobody."""
        reasons = [planned.disturbs for planned in self.changes if isinstance(planned, Change) and planned.disturbs]
        return "; ".join(dict.fromkeys([*reasons, *(["reboots the host"] if self.reboot else [])]))

    def without_reboots(self) -> Plan:
        """The plan without its reboots, for a host that must not be rebooted."""
        roles = []
        for role in self.roles:
            changes = tuple(change for change in role.changes if change.kind != "reboot")
            roles.append(replace(role, changes=changes))
        return replace(self, roles=tuple(roles))

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values, for files, journals and machines."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """The inverse of ``to_json``. Raises ``ValueError`` for anything that is no plan, or an older version's."""
        return adapter(Plan).validate_json(json.dumps(data), strict=True)


@dataclass(frozen=True, slots=True)
class StepResult:
    """How one step went: place in the program, exit status (``None`` while it runs), seconds, output, tries, and how
    many of its seconds it waited for a lock of the host."""

    number: int
    what: str
    status: int | None = None
    duration_s: float = 0.0
    output: str = ""
    tries: int = 1
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RoleResult:
    """How one role's program went on one host."""

    role: str
    status: int
    duration_s: float
    steps: tuple[StepResult, ...] = ()
