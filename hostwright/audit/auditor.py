"""Audit many hosts in parallel, once or repeatedly, and store the results."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from hostwright.apply.events import Emit
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Interrupted, on_each
from hostwright.apply.run import View
from hostwright.audit.auditing import HostAudited, audit_host, fleet_audit, judged, now
from hostwright.audit.auditstore import AuditStore
from hostwright.audit.failures import FailureRule, Treatment, catalogue
from hostwright.audit.fleetaudit import FleetAudit, HostAudit
from hostwright.audit.hardware.known import NOTHING_KNOWN, KnownHardware
from hostwright.audit.judging.judging import unread
from hostwright.audit.reports.ages import Ages
from hostwright.common.command import Command
from hostwright.common.errors import HostError, Stopped
from hostwright.common.secret import Secret
from hostwright.common.untrusted import guarded
from hostwright.plan.model import Facts
from hostwright.plan.targets import Roster, TargetHost, Targets

NEVER_SEEN = f"no facts of this host are stored; run {Command('audit')} once without --offline"
STOPPED = "not audited: the audit was stopped"


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of an audit of many hosts."""

    sudo: bool = True  #: whether to also run the probes that need root
    #: whether to use the stored facts of the last audit instead of contacting the hosts
    offline: bool = False
    #: maximum number of hosts to audit in parallel. For 0, the limit depends on this machine.
    at_once: int = 0


@dataclass(frozen=True, slots=True)
class AuditResult:
    """One audit of all hosts, with the times at which their current statuses and problems began."""

    audit: FleetAudit
    ages: Ages


class Auditor:
    """Audits the hosts of one inventory, and stores the results."""

    def __init__(self, roster: Roster, targets: Targets, options: AuditOptions, *, password: Secret | None, view: View):
        self.memory = AuditStore(roster, targets, (password,) if password else (), view.warn)
        self.targets = targets
        self._roster, self._options = roster, options
        self._password, self._view = password, view

    @property
    def rules(self) -> tuple[FailureRule, ...]:
        """The failure rules of all roles that the site can use."""
        return catalogue(self._roster.roles).rules

    @property
    def treatments(self) -> Mapping[str, Treatment]:
        """The treatment of each known failure in a rebuild of a host, by the name of the failure's rule."""
        return catalogue(self._roster.roles).treatments

    def audit(self) -> AuditResult:
        """Audit all hosts once, and add the result to the history.

        After Ctrl-C, raises ``Interrupted`` with the hosts audited so far; these are also added to the history.
        """
        offline, inventory = self._options.offline, str(self._roster.path)
        began, clock = now(), time.monotonic()
        hosts, cut = (self._stored(), None) if offline else self._probed()
        took_s = 0.0 if offline else time.monotonic() - clock
        audit = fleet_audit(hosts, inventory=inventory, began=began, took_s=took_s, offline=offline)
        if cut is not None:
            self.memory.add(replace(audit, hosts=tuple(host for host in hosts if host.sentence != STOPPED)))
            cut.ended = AuditResult(audit, self.memory.ages())
            raise cut
        if not offline:
            self.memory.add(audit)
        return AuditResult(audit, self.memory.ages())

    def sboms(self, audit: FleetAudit) -> Iterator[tuple[str, str]]:
        """Yield each host that ``audit`` read, with its SBOM (list of software) as CycloneDX JSON.

        If an SBOM cannot be created, warn and skip the host.
        """
        from hostwright.audit.sbom.contents import sbom_of

        # Only this format needs the CycloneDX library, whose import takes 0.2 s.
        from hostwright.audit.sbom.cyclonedx import render_cyclonedx

        for host in audit.hosts:
            if host.sentence:
                continue
            try:
                with guarded(host.host):
                    facts, at = self._read(host)
                    sbom = sbom_of(self.targets.by_name[host.host], facts, at, self.memory.redacted)
                    text = render_cyclonedx(sbom)
            except HostError as error:
                self._view.warn(f"{error}; no SBOM is written for this host")
                continue
            yield host.host, text

    def _read(self, host: HostAudit) -> tuple[Facts, datetime]:
        stored = self.memory.facts(host.host)
        if stored is None or stored[1].isoformat(timespec="seconds") != host.at:
            raise HostError(host.host, "the facts of this host could not be stored")
        return stored

    def _probed(self) -> tuple[list[HostAudit], Interrupted | None]:
        connections = Connections(self._password)
        by_name, cut, known = self.targets.by_name, None, self.memory.hardware()
        with self._view.shown(self.targets) as emit:

            def audited(name: str) -> HostAudit:
                return self._audit_one(by_name[name], connections, emit, known.get(name, NOTHING_KNOWN))

            try:
                results = on_each(tuple(by_name), audited, stop=connections.close, at_once=self._options.at_once)
            except Interrupted as stop:
                results, cut = stop.results, stop
        audits = {host.host: host for host in results.values}
        failed = {
            error.host: (error.sentence, error.lead) for error in results.errors if not isinstance(error, Stopped)
        }
        hosts = []
        for target in self.targets:
            sentence, lead = failed.get(target.name, (STOPPED, ""))
            hosts.append(audits.get(target.name) or unread(target, sentence, now(), lead))
        return hosts, cut

    def _audit_one(self, target: TargetHost, connections: Connections, emit: Emit, known: KnownHardware) -> HostAudit:
        audit, facts = audit_host(target, connections.connect, sudo=self._options.sudo, known=known)
        if facts is not None:
            self.memory.keep(target.name, facts, datetime.fromisoformat(audit.at))
        audit = self.memory.clean(audit)
        emit(HostAudited(target.name, audit))
        return audit

    def _stored(self) -> list[HostAudit]:
        hosts, known = [], self.memory.hardware()
        for target in self.targets:
            stored, before = self.memory.facts(target.name), known.get(target.name, NOTHING_KNOWN)
            hosts.append(judged(target, *stored, before) if stored else unread(target, NEVER_SEEN, now()))
        return hosts
