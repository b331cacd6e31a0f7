"""Hosts that a rebuild could not bring back: locked, with the reason, on the host or on this machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hostwright.apply.locking import locallocks, operatorlock
from hostwright.common.command import Command
from hostwright.common.errors import HostError, HostwrightError
from hostwright.common.operator import operator
from hostwright.common.places import state_root
from hostwright.common.text import printable
from hostwright.plan.host.locks import OperatorLock
from hostwright.rebuild.host.tools import Tools

#: as long as it takes to replace a card; whoever gets the host back removes the lock, and no lock lasts for ever
FOR = timedelta(weeks=4)
REASON_CHARACTERS = 200  #: of a lock's line


def keep_locked(tools: Tools, reason: str, *, answers: bool) -> str:
    """Lock the host, on itself where it ``answers`` and else on this machine; the reason, and where the lock is.

    Raises nothing: the sentence says when locking failed.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    name = tools.target.name
    lock = OperatorLock(operator(), _line(f"rebuild: {reason}"), name, now, now + FOR)
    where = ""
    if answers:
        try:
            with tools.connect() as shell:
                operatorlock.put_lock(shell, lock)
            where = "the host is locked"
        except HostError:
            answers = False  # it went away meanwhile
    if not answers:
        try:
            locallocks.put(state_root(), tools.run.roster.path, lock, now=now)
            where = "the host is locked on this machine"
        except HostwrightError as error:
            return f"{reason}; and locking it failed: {error}"
    return f"{reason}; {where} until {lock.until:%Y-%m-%d} ({Command('unlock', hosts=name)} removes the lock)"


def _line(text: str) -> str:
    """The reason as a lock can hold it: one line of at most ``REASON_CHARACTERS``."""
    line = " ".join(printable(text).split())
    return line if len(line) <= REASON_CHARACTERS else f"{line[: REASON_CHARACTERS - 1]}…"
