"""The nouns: what is asked (Probe), what is answered (Answer, Facts), what shall be (Resource), what differs (Change).

All of them are values. None of them does I/O; a resource is tested by calling it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

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
    """What differs and how it is mended.

    ``steps`` are exactly what apply runs. ``artifacts`` are the names of the stack's files that must lie on the host
    before. ``reboot`` is the reason for which the host must be rebooted after the steps, or empty.
    ``known_after`` names what must come first when the change cannot be known yet (then there are no steps).
    ``opaque`` marks a change whose effect only its own probe can tell.
    ``refusal`` is a sentence when the host must not be touched at all by this role: a preflight said no.
    ``disturbs`` says what it does to running work ("replaces the driver"), or is empty when nobody notices: such a
    change waits for an idle host (``hostwright.draining``). ``busy`` names the work that it would hit, beside whatever
    uses a GPU; it comes and goes, and does not make another change of it.
    """

    what: str
    have: str
    want: str
    steps: tuple[Step, ...] = ()
    diff: str = ""
    artifacts: tuple[str, ...] = ()
    reboot: str = ""
    known_after: str = ""
    opaque: bool = False
    refusal: str = ""
    disturbs: str = ""
    busy: tuple[str, ...] = field(default=(), compare=False)


@runtime_checkable
class Resource(Protocol):
    """One desired state of a host: two pure methods and nothing else."""

    def probes(self) -> tuple[Probe, ...]:
        """The questions whose answers ``plan`` reads."""
        ...

    def plan(self, facts: Facts) -> Change | None:
        """The change that brings the host to this state, or ``None`` when it is there already."""
        ...

    def removal(self) -> tuple[Resource, ...]:
        """The states of a host from which this one was taken away, in the order in which they are brought about.

        Empty where nothing of it stays behind. What was there before, and what others put there, stays.
        """
        ...


@dataclass(frozen=True, slots=True)
class RolePlan:
    """The changes of one role on one host, in order."""

    role: str
    needs: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def steps(self) -> tuple[tuple[Change, Step], ...]:
        """Every step with the change it belongs to, in the order in which apply runs them."""
        return tuple((change, step) for change in self.changes for step in change.steps)


@dataclass(frozen=True, slots=True)
class Plan:
    """What stands between one host and its stack. Empty when the host is as desired.

    A plan is a pure function of the host's facts, so a saved plan is stale exactly when the plan made of fresh facts
    is not equal to it. ``busy`` names the running work that a disturbing change would hit, ``notes`` say who has locked
    or drained the host; these come and go, and are no part of that comparison.
    """

    host: str
    stack: str
    roles: tuple[RolePlan, ...] = ()
    busy: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes of all roles."""
        return tuple(change for role in self.roles for change in role.changes)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.changes

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the host must not be touched, if so."""
        return tuple(change.refusal for change in self.changes if change.refusal)

    @property
    def reboot(self) -> str:
        """The reasons for a reboot, joined; empty when none is wanted."""
        return "; ".join(dict.fromkeys(change.reboot for change in self.changes if change.reboot))

    @property
    def disturbs(self) -> str:
        """What applying this plan does to running work, a reboot included; empty when nobody notices."""
        reasons = [change.disturbs for change in self.changes if change.disturbs]
        return "; ".join(dict.fromkeys([*reasons, *(["reboots the host"] if self.reboot else [])]))

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values, for files, journals and machines."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """The inverse of ``to_json``."""
        roles = tuple(
            RolePlan(
                role=role["role"],
                needs=tuple(role["needs"]),
                changes=tuple(
                    Change(
                        **{
                            **change,
                            "steps": tuple(Step(**step) for step in change["steps"]),
                            "artifacts": tuple(change["artifacts"]),
                            "busy": tuple(change.get("busy", ())),
                        }
                    )
                    for change in role["changes"]
                ),
            )
            for role in data["roles"]
        )
        return cls(data["host"], data["stack"], roles, tuple(data.get("busy", ())), tuple(data.get("notes", ())))


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
