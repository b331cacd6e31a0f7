"""Audit one host over one SSH connection, without changing it.

Unexpected output of the host never raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hostwright.apply.events import Event
from hostwright.audit.failures.units import read_journals, unit_journals
from hostwright.audit.fleetaudit import FleetAudit, HostAudit
from hostwright.audit.hardware.known import NOTHING_KNOWN, KnownHardware
from hostwright.audit.judging.audited import audit_probes, found_probes, rules_of
from hostwright.audit.judging.judging import judge, unread
from hostwright.audit.judging.outliers import spreads
from hostwright.common.errors import Examination, HostError, Stopped
from hostwright.common.text import count
from hostwright.common.untrusted import guarded
from hostwright.plan.model import Facts
from hostwright.plan.observing import ask
from hostwright.plan.probing import ordered
from hostwright.plan.targets import TargetHost
from hostwright.transport.root.rootshell import RootShell

#: time limit in seconds for all probes of a host. The driver of a faulty GPU may need 60 s to report.
ANSWERS_TIMEOUT_S = 180.0

EXAMINE_TIMEOUT_S = 60.0  #: time limit in seconds for a host's probes after a failed step (our choice)

Connect = Callable[[TargetHost], RootShell]


@dataclass(frozen=True, slots=True)
class HostAudited(Event):
    """Event: the audit of a host has finished."""

    audit: HostAudit


def audit_host(
    target: TargetHost, connect: Connect, *, sudo: bool = True, known: KnownHardware = NOTHING_KNOWN
) -> tuple[HostAudit, Facts | None]:
    """Audit the host ``target``. Return the result, and the facts (answers to probes) from which the result was
    computed.

    ``known`` is the hardware that earlier audits found. A host that could not be read has the status ``unread`` and no
    facts. Raises ``Stopped`` if the operator stops the audit.
    """
    try:
        with connect(target) as shell:
            probes = ordered((*audit_probes(target, sudo=sudo), *(found_probes(target) if sudo else ())))
            facts = ask(shell, probes, timeout_s=ANSWERS_TIMEOUT_S)
    except Stopped:
        raise
    except HostError as error:
        return unread(target, error.sentence, now(), error.lead), None
    return judged(target, facts, now(), known), facts


def examine(
    target: TargetHost, shell: RootShell, units: Sequence[str] = (), clean: Callable[[str], str] = str
) -> Examination:
    """Search the host ``target`` for known failures after a failed step, and read the journals of ``units``.

    ``clean`` masks secrets in findings and journals.
    """
    logged = [unit_journals(units)] if units else []
    try:
        with guarded(target.name):
            facts = ask(shell, (*audit_probes(target), *logged), timeout_s=EXAMINE_TIMEOUT_S)
    except HostError as error:
        return Examination((), f"known problems could not be checked on the host: {error.sentence}")
    journals = read_journals("".join(clean(facts[probe].text) for probe in logged if probe in facts))
    audit = judged(target, facts, now())
    if audit.status == "unread":
        return Examination((), f"known problems could not be checked on the host: {clean(audit.sentence)}", journals)
    signs = len(rules_of(target).signed)
    seen = count(len(audit.findings), "known problem") if audit.findings else "no known problem"
    unread = {skipped.check for skipped in audit.not_checked}
    more = f"; {len(unread)} could not be checked" if unread else ""
    findings = tuple(replace(one, evidence=tuple(map(clean, one.evidence))) for one in audit.findings)
    sentence = f"{seen} found on the host ({count(signs, 'sign')} searched for{more})"
    return Examination(findings, sentence, journals, tuple(sorted(unread)))


def judged(target: TargetHost, facts: Facts, at: datetime, known: KnownHardware = NOTHING_KNOWN) -> HostAudit:
    """Compute the audit of the host ``target`` from ``facts``.

    Unexpected facts give the status ``unread``, not an error.
    """
    try:
        with guarded(target.name), target.memory.turn:
            return judge(target, facts, at, known)
    except HostError as error:
        return unread(target, error.sentence, at)


def fleet_audit(
    hosts: Iterable[HostAudit], *, inventory: str, began: datetime, took_s: float = 0.0, offline: bool = False
) -> FleetAudit:
    """Combine the audits of single hosts into one audit of the fleet, and compare the hosts."""
    audited = tuple(hosts)
    at = began.isoformat(timespec="seconds")
    return FleetAudit(at, inventory, audited, spreads(audited), round(took_s, 3), offline)


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
