"""The process's own command line, as printed commands repeat it. Nothing that is slow to import."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

from hostwright.common.request import Request


@dataclass(frozen=True, slots=True)
class Call:
    """The program that was called, its ``--site``, and what was asked for."""

    program: str = "invoke"
    site: str = ""
    request: Request = field(default_factory=Request)


CALL: ContextVar[Call] = ContextVar("CALL")


def current() -> Call:
    """The call of this process; that of nothing where no verb was called."""
    return CALL.get(Call())
