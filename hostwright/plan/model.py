"""The types of planning: ``Probe`` and ``Facts`` (``plan.facts``), ``Resource`` (a desired state), and ``Planned`` (a
difference from it).

None of them does I/O, so a resource is tested by calling it.
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
    """One command of a change. It runs on the host as root, in POSIX sh with ``set -eu``.

    ``lock`` is the name of a lock on the host to hold while the step runs; every step that uses dpkg sets ``"dpkg"``.
    ``timeout_s`` limits each try. ``tries`` is the maximum number of runs if it fails for a transient reason (a mirror,
    apt's lock); 1 for a step that is not safe to repeat.
    """

    script: str
    lock: str = ""
    timeout_s: float = 1800.0
    tries: int = 1


@dataclass(frozen=True, slots=True)
class RetryRule:
    """A rule about retries: if a failed step's output has a line that matches ``pattern``, the step is retried or not
    (``passes``).

    A line that also matches ``unless`` is ignored. Both patterns must mean the same to ``untrusted.Pattern`` and ``grep
    -P``.
    """

    pattern: str
    passes: bool
    unless: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference, and the ``steps`` that correct it: one or more commands, run exactly as planned.

    ``artifacts`` are the names of stack files that must be on the host first. If a change with ``alone`` fails, the
    later changes of its role still run, and the run fails at its end. ``disturbs`` describes its effect on running work
    ("replaces the driver"), else it is empty; a change that disturbs waits for an idle host
    (``hostwright.apply.disturb.draining``). ``warnings`` are sentences for the operator. If the host must be rebooted
    after the steps, the next plan has a ``Reboot``.
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
    """A difference that a reboot corrects; ``reason`` is a clause for messages."""

    kind: Literal["reboot"] = field(default="reboot", kw_only=True)
    what: str
    have: str
    want: str
    reason: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """A difference whose correction can be planned only after the event ``until``, such as "reboot".

    ``artifacts`` are stack files that the correction will need, so that a missing file is detected before any change.
    """

    kind: Literal["deferred"] = field(default="deferred", kw_only=True)
    what: str
    have: str
    want: str
    until: str
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """The host must not be changed: ``rule`` forbids it, and ``sentence`` is the error for the operator.

    With ``alone``, all other changes are still made, and the run fails at its end with this sentence.
    """

    kind: Literal["refusal"] = field(default="refusal", kw_only=True)
    what: str
    have: str
    want: str
    rule: str
    sentence: str
    alone: bool = False


#: The plan of a state on a host that is not as desired. Only ``Change`` has steps to run.
Planned: TypeAlias = Change | Reboot | Deferred | Refusal


class Resource(ABC):
    """One desired state of a host: a frozen dataclass that inherits from this class. Its methods are pure.

    Every state has ``probes``, ``plan`` and ``removal``. A state overrides another method only if it has something to
    report. All methods with a parameter ``facts`` read the same answers as ``plan``.
    """

    __slots__ = ()

    @abstractmethod
    def probes(self) -> tuple[Probe, ...]:
        """The probes whose answers ``plan`` reads."""

    @abstractmethod
    def plan(self, facts: Facts) -> Planned | None:
        """The change to this state, or the obstacle; ``None`` if the host is in this state."""

    @abstractmethod
    def removal(self) -> tuple[Resource, ...]:
        """The desired states of a host without this state, in order.

        Empty if this state leaves nothing behind. Anything that existed before, or was added by others, is kept.
        """

    def takes(self) -> frozenset[str]:
        """Names of things that this removal deletes, and that another role may also use: ``package gcc``, ``file
        /etc/motd``.
        """
        return frozenset()

    def sparing(self, wanted: Set[str], /) -> Self | None:
        """This removal without the things that other roles need (names as in ``takes``); ``None`` if nothing is left to
        delete.
        """
        return None if self.takes() and self.takes() <= wanted else self

    def users(self, _facts: Facts, /) -> tuple[str, ...]:
        """Running work that this change would disturb, whether it uses a GPU or not, such as ``python3 (4711)``."""
        return ()

    def losses(self, _facts: Facts, /) -> tuple[str, ...]:
        """Things that this change would delete permanently, as noun phrases ("the driver"); the operator must confirm
        with ``--yes``.
        """
        return ()

    def notes(self, _facts: Facts, /) -> tuple[str, ...]:
        """Sentences about the host for the operator, whether anything differs or not."""
        return ()

    def software(self, _facts: Facts, /) -> tuple[Software, ...]:
        """The software of this state, installed or missing, for SBOMs."""
        return ()

    def role_files(self) -> tuple[RoleFile, ...]:
        """Files that no stack lists, and that changes to this state may use as artifacts on any host."""
        return ()

    def role_files_for(self, _facts: Facts | None, /) -> tuple[RoleFile, ...]:
        """The files of ``role_files`` that a host with these facts uses; without facts, all files that a host may use.

        Raises ``ArtifactError`` if the host uses an unknown file.
        """
        return ()

    def packages_for(self, _facts: Facts | None, /) -> tuple[str, ...]:
        """The distribution's packages that this state requires on a host, as ``name`` or ``name=version``, including
        installed ones.

        Without facts, all packages that any host may require.
        """
        return ()

    def from_mirror(self, _mirror: PackageMirror, /) -> Self:
        """The same state with the distribution's packages from the mirror."""
        return self

    def repositories(self) -> Mapping[str, Artifact]:
        """The repositories that this state puts on the host's own disk: source list → package file."""
        return {}

    def archive_components(self) -> tuple[str, ...]:
        """The components of the distribution's archive that contain this state's packages, such as ``non-free``."""
        return ()

    def packages_from(self, _list_file: str, /) -> tuple[str, ...]:
        """The packages that this state installs from this source list, as ``name`` or ``name=version``."""
        return ()


class RemovalState(Resource):
    """A state that occurs only in ``removal()`` of other states; it has no removal of its own."""

    __slots__ = ()

    def removal(self) -> tuple[Resource, ...]:
        return ()


class ReturnState(RemovalState):
    """A removal that restores the state before Hostwright. It is skipped if the host is provisioned right
    afterwards.
    """

    __slots__ = ()


class Condition(ABC):
    """A yes-or-no condition on a host: a frozen dataclass that inherits from this class."""

    __slots__ = ()

    @abstractmethod
    def probes(self) -> tuple[Probe, ...]:
        """The probes whose answers ``holds`` reads."""

    @abstractmethod
    def holds(self, facts: Facts) -> bool:
        """Whether the condition is true on this host."""

    def users(self, _facts: Facts, /) -> tuple[str, ...]:
        """Running work that a change under this condition would disturb."""
        return ()


GONE = ("absent", "as before")  #: beginnings of the ``want`` of a removal
_NOUNS = ("refusal", "change", "removal")


def tally(planned: Iterable[tuple[str, str]]) -> str:
    """The numbers of refusals, changes and removals as text; ``planned`` are pairs of kind and ``want``.

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
    """Whether a change removes something: its object, or other packages that ``want`` lists."""
    return want.startswith(GONE) or (want.startswith("in order (") and " removed" in want)


@dataclass(frozen=True, slots=True)
class RolePlan:
    """The plan for one role on one host, in order."""

    role: str
    needs: tuple[str, ...] = ()
    changes: tuple[Annotated[Planned, Field(discriminator="kind")], ...] = ()

    @property
    def tally(self) -> str:
        """The numbers of changes as text: ``3 changes, 1 removal``."""
        return tally((planned.kind, planned.want) for planned in self.changes)

    @property
    def steps(self) -> tuple[tuple[Change, Step], ...]:
        """Every step with its change, in the order of execution."""
        return tuple((change, step) for change in self.changes if isinstance(change, Change) for step in change.steps)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The names of the stack files that the plan uses, each once."""
        named = (planned.artifacts for planned in self.changes if isinstance(planned, Change | Deferred))
        return tuple(dict.fromkeys(name for names in named for name in names))


@dataclass(frozen=True, slots=True)
class Plan:
    """The differences between one host and its stack. Empty if the host is as desired.

    A plan is a pure function of the host's facts: a saved plan is stale if and only if a plan made of fresh facts
    differs. Further information for the operator, such as running work, is in ``planning.HostPlan``.

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
        """The plans of the states of all roles."""
        return tuple(change for role in self.roles for change in role.changes)

    @property
    def tally(self) -> str:
        """The numbers of changes as text: ``3 changes, 1 removal``; empty for an empty plan."""
        return tally((planned.kind, planned.want) for planned in self.changes)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The names of the stack files that the plan uses, each once."""
        return tuple(dict.fromkeys(name for role in self.roles for name in role.artifacts))

    @property
    def empty(self) -> bool:
        """Whether the plan has no changes."""
        return not self.changes

    @property
    def refusals(self) -> tuple[str, ...]:
        """The reasons why the host must not be changed. Refusals with ``alone`` are left out while other changes
        remain.
        """
        refused = [planned for planned in self.changes if isinstance(planned, Refusal)]
        rest = any(isinstance(planned, Change | Reboot) for planned in self.changes)
        if rest and all(refusal.alone for refusal in refused):
            return ()
        return tuple(refusal.sentence for refusal in refused)

    @property
    def reboot(self) -> str:
        """The reasons for a reboot, joined; empty if none is planned."""
        return "; ".join(dict.fromkeys(planned.reason for planned in self.changes if isinstance(planned, Reboot)))

    @property
    def disturbs(self) -> str:
        """The effects of this plan on running work, including a reboot; empty if it disturbs no work."""
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
        """The plan as JSON values, for files and journals."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """The inverse of ``to_json``. Raises ``ValueError`` for data that is not a plan of this version."""
        return adapter(Plan).validate_json(json.dumps(data), strict=True)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step: number in the program, exit status (``None`` while it runs), seconds, output, tries, and
    seconds spent waiting for a lock of the host.
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
    """The result of one role's program on one host."""

    role: str
    status: int
    duration_s: float
    steps: tuple[StepResult, ...] = ()
