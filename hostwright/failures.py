"""For authors of roles: the names that a role's ``failures.py`` uses to declare known failures."""

from __future__ import annotations

from hostwright.audit.failures import Case, Covers, Hardware, Held, NoRoom, Stuck, Tangled, logs
from hostwright.audit.failures.harmless import Try
from hostwright.audit.failures.homes import LOOK_S, homes_probe
from hostwright.audit.failures.logs import LAST_JOBS, ended
from hostwright.audit.failures.rule import FailureRule, Sign, Variant
from hostwright.audit.failures.treatment import ForPeople
from hostwright.audit.failures.units import Units, known_cause, last_words
from hostwright.audit.failures.wanted import wanted
from hostwright.audit.judging.context import AuditContext, Cards, Unread, once

__all__ = [
    "LAST_JOBS", "LOOK_S", "AuditContext", "Cards", "Case", "Covers", "FailureRule", "ForPeople", "Hardware", "Held",
    "NoRoom", "Sign", "Stuck", "Tangled", "Try", "Units", "Unread", "Variant", "ended", "homes_probe", "known_cause",
    "last_words", "logs", "once", "wanted",
]  # fmt: skip
