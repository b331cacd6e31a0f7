"""The types of planning: ``Probe`` and ``Facts`` (``plan.facts``), ``Resource`` (a desired state), and ``Planned`` (a
difference from it).

These types do no I/O, so a test of a resource only calls the resource's methods.
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
    """One command of a ``Change``: POSIX sh that runs on the host as root, with ``set -eu``.

    ``lock`` is the name of a lock on the host that the step holds; every step that uses dpkg has ``"dpkg"``.
    ``timeout_s`` limits each try. ``tries`` is the maximum number of tries after transient failures; 1 if the step must
    not be repeated.
    """

    script: str
    lock: str = ""
    timeout_s: float = 1800.0
    tries: int = 1


@dataclass(frozen=True, slots=True)
class RetryRule:
    """A rule for failed steps with a line of output that matches ``pattern``: retry such a step only if ``passes`` is
    true.

    Lines that match ``unless`` are ignored. Both patterns must mean the same in ``untrusted.Pattern`` and in ``grep
    -P``.
    """

    pattern: str
    passes: bool
    unless: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between a host and a desired state, and the ``steps`` that correct it, run exactly as planned.

    ``artifacts`` are the names of stack files that must be on the host before the steps run. If a change with ``alone``
    fails, later changes of the role still run, and the run fails at its end. ``disturbs`` describes the effect on
    running work ("replaces the driver"). A change with this effect waits until the host is idle. ``warnings`` are
    sentences for the operator.
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
            raise ValueError(f"the change {self.what} has no steps")


@dataclass(frozen=True, slots=True)
class Reboot:
    """A difference between a host and a desired state that a reboot corrects. ``reason`` is a clause for messages."""

    kind: Literal["reboot"] = field(default="reboot", kw_only=True)
    what: str
    have: str
    want: str
    reason: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """A difference that can be corrected only after the event ``until`` ("reboot").

    ``artifacts`` are the names of stack files for the correction.
    """

    kind: Literal["deferred"] = field(default="deferred", kw_only=True)
    what: str
    have: str
    want: str
    until: str
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason why a host must not be changed: the rule ``rule`` forbids it. ``sentence`` is the error text.

    With ``alone``, the run still makes the other changes, and fails at its end.
    """

    kind: Literal["refusal"] = field(default="refusal", kw_only=True)
    what: str
    have: str
    want: str
    rule: str
    sentence: str
    alone: bool = False


#: result of ``Resource.plan`` for a difference; only ``Change`` has steps
Planned: TypeAlias = Change | Reboot | Deferred | Refusal


class Resource(ABC):
    """A desired state of one thing on a host, such as a file: a frozen dataclass with pure methods.

    Subclasses define ``probes``, ``plan`` and ``removal``. Methods with ``facts`` read only answers to ``probes``.
    """

    __slots__ = ()

    @abstractmethod
    def probes(self) -> tuple[Probe, ...]:
        """The probes whose answers ``plan`` reads."""

    @abstractmethod
    def plan(self, facts: Facts) -> Planned | None:
        """The change that brings the host to this state, or the reason against a change; ``None`` if no change is
        needed.
        """

    @abstractmethod
    def removal(self) -> tuple[Resource, ...]:
        """The states that undo this state on a host, in order; empty if there is nothing to undo.

        Files and packages that Hostwright did not add are kept.
        """

    def takes(self) -> frozenset[str]:
        """The packages and files that a removal deletes and that other roles may need (``package gcc``)."""
        return frozenset()

    def sparing(self, wanted: Set[str], /) -> Self | None:
        """This removal without the deletion of the packages and files ``wanted``; ``None`` if it deletes nothing
        else.
        """
        return None if self.takes() and self.takes() <= wanted else self

    def users(self, _facts: Facts, /) -> tuple[str, ...]:
        """The running work that a change to this state would disturb, such as ``python3 (4711)``."""
        return ()

    def losses(self, _facts: Facts, /) -> tuple[str, ...]:
        """Noun phrases for everything that a change to this state would delete permanently ("the driver").

        The operator must confirm the losses with ``--yes``.
        """
        return ()

    def notes(self, _facts: Facts, /) -> tuple[str, ...]:
        """Sentences about the host for the operator, whether or not the host is in this state."""
        return ()

    def software(self, _facts: Facts, /) -> tuple[Software, ...]:
        """The software of this state for SBOMs, also software that is missing on the host."""
        return ()

    def role_files(self) -> tuple[RoleFile, ...]:
        """The files outside the stack that changes to this state may use as artifacts, for all hosts together."""
        return ()

    def role_files_for(self, _facts: Facts | None, /) -> tuple[RoleFile, ...]:
        """The ``role_files`` for a host with these facts; without facts, all of them.

        Raises ``ArtifactError`` if the host needs a file that is not in ``role_files``.
        """
        return ()

    def packages_for(self, _facts: Facts | None, /) -> tuple[str, ...]:
        """The distribution's packages that this state requires, as ``name`` or ``name=version``, installed or not.

        Without facts, these are the packages that any host may require.
        """
        return ()

    def from_mirror(self, _mirror: PackageMirror, /) -> Self:
        """Return a copy of this state that installs the distribution's packages from ``_mirror``."""
        return self

    def repositories(self) -> Mapping[str, Artifact]:
        """The package repositories that this state unpacks on the host.

        The mapping is from the path of the apt source list to the package file with the repository.
        """
        return {}

    def archive_components(self) -> tuple[str, ...]:
        """The components of the distribution's archive that contain this state's packages, such as ``non-free``."""
        return ()

    def packages_from(self, _list_file: str, /) -> tuple[str, ...]:
        """The packages that this state installs from the apt source list ``_list_file``: ``name`` or
        ``name=version``.
        """
        return ()


class RemovalState(Resource):
    """A state that occurs only in results of ``Resource.removal``, and that has no removal itself."""

    __slots__ = ()

    def removal(self) -> tuple[Resource, ...]:
        return ()


class ReturnState(RemovalState):
    """A removal that restores the host's state from before Hostwright.

    The removal is omitted if the host is provisioned again right afterwards.
    """

    __slots__ = ()


class Condition(ABC):
    """A yes-or-no condition on a host: a frozen dataclass."""

    __slots__ = ()

    @abstractmethod
    def probes(self) -> tuple[Probe, ...]:
        """The probes whose answers ``holds`` reads."""

    @abstractmethod
    def holds(self, facts: Facts) -> bool:
        """Whether the condition is true on this host."""

    def users(self, _facts: Facts, /) -> tuple[str, ...]:
        """The running work that changes with this condition would disturb."""
        return ()


GONE = ("absent", "as before")  #: first words of the ``want`` of a change that is a removal
_NOUNS = ("refusal", "change", "removal")


def tally(planned: Iterable[tuple[str, str]]) -> str:
    """Return the numbers of refusals, changes and removals as text. ``planned`` are pairs of ``Planned.kind`` and
    ``Planned.want``.

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
    return want.startswith(GONE) or (want.startswith("in order (") and " removed" in want)


@dataclass(frozen=True, slots=True)
class RolePlan:
    """The differences planned for one role on a host (``changes``), in order of execution."""

    role: str
    needs: tuple[str, ...] = ()
    changes: tuple[Annotated[Planned, Field(discriminator="kind")], ...] = ()

    @property
    def tally(self) -> str:
        """The numbers of refusals, changes and removals as text: ``3 changes, 1 removal``."""
        return tally((planned.kind, planned.want) for planned in self.changes)

    @property
    def steps(self) -> tuple[tuple[Change, Step], ...]:
        """All steps of the role in order of execution, each with its change."""
        return tuple((change, step) for change in self.changes if isinstance(change, Change) for step in change.steps)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The names of the stack files that the role's changes use, each once."""
        named = (planned.artifacts for planned in self.changes if isinstance(planned, Change | Deferred))
        return tuple(dict.fromkeys(name for names in named for name in names))


@dataclass(frozen=True, slots=True)
class Plan:
    """The differences between a host and its desired states, by role; empty if the host is as desired.

    A plan is a pure function of the host's facts: a saved plan is stale if and only if a new plan differs from it.

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
        """The planned differences of all roles."""
        return tuple(change for role in self.roles for change in role.changes)

    @property
    def tally(self) -> str:
        """The numbers of refusals, changes and removals as text: ``3 changes, 1 removal``; empty for an empty plan."""
        return tally((planned.kind, planned.want) for planned in self.changes)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The names of stack files that the plan uses, each once."""
        return tuple(dict.fromkeys(name for role in self.roles for name in role.artifacts))

    @property
    def empty(self) -> bool:
        """Whether the host has no differences from its desired states."""
        return not self.changes

    @property
    def refusals(self) -> tuple[str, ...]:
        """The error texts of refusals that forbid every change of the host.

        Empty if all refusals are ``alone`` and the plan has other changes.
        """
        refused = [planned for planned in self.changes if isinstance(planned, Refusal)]
        rest = any(isinstance(planned, Change | Reboot) for planned in self.changes)
        if rest and all(refusal.alone for refusal in refused):
            return ()
        return tuple(refusal.sentence for refusal in refused)

    @property
    def reboot(self) -> str:
        """The reasons for a reboot as one text; empty if no reboot is planned."""
        return "; ".join(dict.fromkeys(planned.reason for planned in self.changes if isinstance(planned, Reboot)))

    @property
    def disturbs(self) -> str:
        """The plan's effects on running work as one text, including a reboot; empty without an effect."""
        reasons = [planned.disturbs for planned in self.changes if isinstance(planned, Change) and planned.disturbs]
        return "; ".join(dict.fromkeys([*reasons, *(["reboots the host"] if self.reboot else [])]))

    def without_reboots(self) -> Plan:
        """Return the plan for a host that must not be rebooted."""
        roles = []
        for role in self.roles:
            changes = tuple(change for change in role.changes if change.kind != "reboot")
            roles.append(replace(role, changes=changes))
        return replace(self, roles=tuple(roles))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values, for files and journals."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """Convert JSON values from ``to_json`` to a plan. Raises ``ValueError`` for other data."""
        return adapter(Plan).validate_json(json.dumps(data), strict=True)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a ``Step``. ``status`` is the exit status, or ``None`` while the step runs.

    ``number`` is the step's position in its role's program. ``waited_s`` are the seconds for which the step waited for
    its lock.
    """

    number: int
    what: str
    status: int | None = None
    duration_s: float = 0.0
    output: str = ""
    tries: int = 1
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RoleResult:
    """The result of all steps of a role on a host: exit status and duration."""

    role: str
    status: int
    duration_s: float
    steps: tuple[StepResult, ...] = ()
