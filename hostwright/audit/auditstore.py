"""Audit data on this machine: the history, and the last facts of each host for ``--offline``.

If the data cannot be written, for example because the disk is full, the audit continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from hostwright.apply.journal.redaction import Redactor, secrets_in
from hostwright.audit.besteffort import BestEffort
from hostwright.audit.fleetaudit import FleetAudit, HostAudit
from hostwright.audit.hardware.known import KnownHardware
from hostwright.audit.history import FactStore, History
from hostwright.audit.reports.ages import Ages
from hostwright.audit.reports.trend import TrendPoint
from hostwright.common.places import state_root
from hostwright.common.secret import Secret
from hostwright.plan.model import Facts
from hostwright.plan.targets import Roster, Targets

TREND_DAYS = 90  #: number of days in the charts of the HTML report


class AuditStore:
    """The audit history and the stored facts of one inventory.

    ``warn`` receives a message about the first error only.
    """

    def __init__(self, roster: Roster, targets: Targets, secrets: Sequence[Secret], warn: Callable[[str], None]):
        self._inventory = str(roster.path)
        self._secrets, self._hosts, self._targets = secrets, roster.inventory.hosts, targets
        self._attempt = BestEffort(warn, "the history of audits", "The audit continues")

    @cached_property
    def _redactor(self) -> Redactor:
        """The object that masks secrets. Its creation is slow, because it searches all variables of the fleet."""
        return Redactor({*secrets_in(self._hosts.values(), self._targets), *self._secrets})

    @cached_property
    def _history(self) -> History:
        return History(state_root())

    @cached_property
    def _facts(self) -> FactStore:
        return FactStore(state_root())

    def clean(self, audit: HostAudit) -> HostAudit:
        """Return ``audit`` with secrets masked, such as a token in a user's profile."""
        text = self._redactor.text
        return replace(
            audit,
            sentence=text(audit.sentence),
            readings=tuple(
                replace(reading, have=have) if (have := text(reading.have)) != reading.have else reading
                for reading in audit.readings
            ),
            deviations=tuple(
                replace(deviation, have=text(deviation.have), want=text(deviation.want))
                for deviation in audit.deviations
            ),
            findings=tuple(replace(finding, evidence=tuple(map(text, finding.evidence))) for finding in audit.findings),
        )

    def redacted(self, text: str) -> str:
        """Return ``text`` with secrets masked."""
        return self._redactor.text(text)

    def add(self, audit: FleetAudit) -> None:
        """Add ``audit`` to the history. If this fails, warn once and continue."""
        self._attempt(lambda: self._history.add(audit))

    def keep(self, host: str, facts: Facts, at: datetime) -> None:
        """Store the facts of ``host``, read at the time ``at``, for ``--offline``."""
        self._attempt(lambda: self._facts.keep(self._inventory, host, at, facts, self._redactor))

    def facts(self, host: str) -> tuple[Facts, datetime] | None:
        """Return the facts of the last audit of ``host``, and the time when they were read; ``None`` without an audit.

        Raises ``InputError`` if the file with the facts is damaged.
        """
        return self._facts.load(self._inventory, host)

    def ages(self) -> Ages:
        """Return the times at which current statuses and problems began; empty if the history cannot be read."""
        return self._attempt(lambda: self._history.ages(self._inventory)) or {}

    def hardware(self) -> Mapping[str, KnownHardware]:
        """Return the hardware that audits of the last 30 days found, by host; empty if the history cannot be read."""
        return self._attempt(lambda: self._history.hardware(self._inventory)) or {}

    def trend(self) -> Sequence[TrendPoint]:
        """Return the number of hosts by status and by value of each reading, one point per day with an audit.

        Empty if the history cannot be read.
        """
        return self._attempt(lambda: self._history.trend(self._inventory, TREND_DAYS)) or ()
