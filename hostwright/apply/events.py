"""The events of a run. Console output, JSON output and the journal are made from the same events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hostwright.apply.jobs.scripting import Progress
from hostwright.common.errors import Finding
from hostwright.plan.model import Facts, Plan, RoleResult


@dataclass(frozen=True, slots=True)
class EventOrigin:
    """The worker that recorded an event in another process. The event has the number ``number`` in ``attempt``, the
    worker's attempt to work on the host.
    """

    worker: str
    attempt: str
    number: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a run, on one host, or of the whole run if ``host`` is empty."""

    host: str
    origin: EventOrigin | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Waiting(Event):
    """The run waits for the host. ``what`` names the awaited thing, such as "a connection" or "its answers"."""

    what: str


@dataclass(frozen=True, slots=True)
class Silent(Event):
    """The host has sent nothing for ``seconds`` while the run waited for ``what``."""

    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """The host was probed. The event contains the facts and the plan."""

    plan: Plan
    facts: Facts | None = None


#: possible values of ``Delivering.source``. A host name follows ``PEER``.
FROM_HERE, OVER_SSH, VENDOR, PEER = "controller", "ssh", "vendor", "peer "
_WORDS = {FROM_HERE: "from this machine", OVER_SSH: "over SSH", VENDOR: "from its vendor"}


def whence(source: str) -> str:
    """Return a phrase for ``source``, the source of a file; empty for an unknown source.

    >>> [whence(source) for source in ("peer gpu03", "controller", "ssh", "vendor", "")]
    ['from gpu03', 'from this machine', 'over SSH', 'from its vendor', '']
    """
    return _WORDS.get(source) or (f"from {source.removeprefix(PEER)}" if source else "")


@dataclass(frozen=True, slots=True)
class Delivering(Event):
    """A file of the stack is being transferred to the host: bytes that have arrived, and bytes in total.

    ``source`` is ``peer NAME`` (another host), ``controller`` (this machine, by HTTP), ``ssh`` (this machine, over the
    connection) or ``vendor``. At the end of the transfer, ``sent`` has the bytes from each source, and ``seconds`` the
    duration including all waits.
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
    """The job of a role was started on the host. ``job`` is the ID of the job."""

    role: str
    steps: int
    job: str = ""


@dataclass(frozen=True, slots=True)
class Attached(Event):
    """The run waits for a job of an earlier run on the host. ``run`` is the ID of the earlier run; ``operator`` is the
    user who started that run.
    """

    role: str
    steps: int
    job: str
    run: str = ""
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Retrying(Event):
    """The step ``what`` failed with a transient error. Retry number ``number`` of the step starts after ``wait_s``
    seconds.
    """

    what: str
    number: int
    wait_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Rebooted(Event):
    """The host was rebooted and is reachable again after ``seconds``."""

    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Phase(Event):
    """One phase of the rebuild of a host ended after ``seconds``."""

    phase: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RoleProgress(Event):
    """The job of a role printed output on the host."""

    role: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class RoleFinished(Event):
    """The job of a role ended on the host."""

    role: str
    result: RoleResult


@dataclass(frozen=True, slots=True)
class Note(Event):
    """A message for the operator, for example about a skipped role."""

    text: str


@dataclass(frozen=True, slots=True)
class Explained(Event):
    """Known problems (``findings``) that explain a failure. ``what`` names the failed check; ``why`` describes the
    failure.
    """

    what: str
    why: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class HostEnded(Event):
    """The run on a host has ended. ``result`` is one of ``RESULTS``; ``sentence`` is the reason for a bad result."""

    result: str
    sentence: str = ""


#: possible results of a host in a run
#: as desired: the host needed no change
#: changed: the host now matches its stack
#: ran: the operator's command exited with 0
#: pending: the host still needs a reboot
#: locked: an operator or another run has locked the host
#: stopped: the operator stopped the run during the work on the host
#: untouched: the run stopped before any work on the host
RESULTS = ("as desired", "changed", "ran", "pending", "failed", "locked", "unreachable", "stopped", "untouched")
SHOWN_RESULTS = {result: result for result in RESULTS} | {"pending": "reboot pending"}

Emit = Callable[[Event], None]
