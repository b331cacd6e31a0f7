"""What happens while hosts are brought to their stack, as values: console and JSON output read the same stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hostwright.model import Plan, RoleResult
from hostwright.scripting import Progress


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened on one host, ``at_s`` seconds after the run began."""

    host: str
    at_s: float = field(kw_only=True, default=0.0)


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """The host answered, and this is what stands between it and its stack."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Delivering(Event):
    """A file of the stack is on its way to the host: bytes there, bytes in all."""

    role: str
    artifact: str
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class RoleStarted(Event):
    """A role's job was started on the host."""

    role: str
    steps: int


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


Emit = Callable[[Event], None]
