"""What happens during a run, as values: console and JSON output read the same stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hostwright.apply.jobs.scripting import Progress
from hostwright.common.errors import Finding
from hostwright.plan.model import Facts, Plan, RoleResult


@dataclass(frozen=True, slots=True)
class EventOrigin:
    """Who saw an event that this process did not see itself: a worker, in one of its attempts at a host (``attempt``),
    as the ``number``-th that is recorded."""

    worker: str
    attempt: str
    number: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened on one host, or, where ``host`` is empty, to the run."""

    host: str
    origin: EventOrigin | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Waiting(Event):
    """The run waits for the host: ``what`` says for what, such as "a connection" or "its answers"."""

    what: str


@dataclass(frozen=True, slots=True)
class Silent(Event):
    """The host has given no sign of life for ``seconds`` while the run waited for ``what``."""

    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """The host was probed: its plan, and the facts that the plan was made of."""

    plan: Plan
    facts: Facts | None = None


FROM_HERE, OVER_SSH, VENDOR, PEER = "controller", "ssh", "vendor", "peer "  #: sources; the last one before a name
_WORDS = {FROM_HERE: "from this machine", OVER_SSH: "over SSH", VENDOR: "from its vendor"}


def whence(source: str) -> str:
    """Where a file comes from, as people say it; empty where that is not known.

    >>> [whence(source) for source in ("peer gpu03", "controller", "ssh", "vendor", "")]
    ['from gpu03', 'from this machine', 'over SSH', 'from its vendor', '']
    """
    return _WORDS.get(source) or (f"from {source.removeprefix(PEER)}" if source else "")


@dataclass(frozen=True, slots=True)
class Delivering(Event):
    """A file of the stack is on its way to the host: bytes that have arrived, and bytes in total.

    ``source`` is where it comes from: ``peer NAME`` (another host), ``controller`` (this machine, by HTTP), ``ssh``
    (this machine, over the connection) or ``vendor``. Once the file is there, ``sent`` has the bytes that came from
    each source, and ``seconds`` says how long it was on its way, with what it waited for a source.
    """

    role: str
    artifact: str
    done_bytes: int
    total_bytes: int
    source: str = ""
    sent: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RoleStarted(Event):
    """A role's job was started on the host; ``job`` is its name there."""

    role: str
    steps: int
    job: str = ""


@dataclass(frozen=True, slots=True)
class Attached(Event):
    """A job of an earlier run is still running, and is followed; ``run`` and ``operator`` started it."""

    role: str
    steps: int
    job: str
    run: str = ""
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Retrying(Event):
    """A transient failure of ``what``: it is retried for the ``number``-th time, after ``wait_s`` seconds."""

    what: str
    number: int
    wait_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Rebooted(Event):
    """The host was rebooted and is back after ``seconds``."""

    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Phase(Event):
    """A phase of a rebuild ended after ``seconds``."""

    phase: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RoleProgress(Event):
    """A role's job printed something."""

    role: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class RoleFinished(Event):
    """A role's job ended."""

    role: str
    result: RoleResult


@dataclass(frozen=True, slots=True)
class Note(Event):
    """A sentence worth a line: waiting for a job of an earlier run, rebooting, a role that was not tried."""

    text: str


@dataclass(frozen=True, slots=True)
class Explained(Event):
    """Something failed (``what``, ``why``), or was looked for after a failure, and these known problems were seen."""

    what: str
    why: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class HostEnded(Event):
    """The run has ended on a host. ``result`` is one of ``RESULTS``; ``sentence`` says why, where it is a bad one."""

    result: str
    sentence: str = ""


#: as desired: nothing was to do · changed: brought to its stack · ran: the operator's command ended with 0 there ·
#: pending: a reboot was left pending · failed · locked: by an operator or another run, and left as it was ·
#: unreachable · stopped: by the operator, before all was done · untouched: never begun, since the run had stopped
RESULTS = ("as desired", "changed", "ran", "pending", "failed", "locked", "unreachable", "stopped", "untouched")
#: as people read them: the record says ``pending``, and what is pending is a reboot
SHOWN_RESULTS = {result: result for result in RESULTS} | {"pending": "reboot pending"}

Emit = Callable[[Event], None]
