"""``invoke audit`` and ``invoke doctor``: what hosts have, what they suffer from, and since when."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType

from hostwright.apply.events import Emit
from hostwright.apply.rollout.rollout import on_each
from hostwright.audit.auditing import Audited, audit_host, fleet_audit, judged, now
from hostwright.audit.judging import unread
from hostwright.audit.reports.ages import Ages
from hostwright.audit.values import SCHEMA, FleetAudit, HostAudit
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, DIFFERS, FAILED, Call, Connections
from hostwright.cli.outputs import Outputs
from hostwright.cli.remembering import Memory
from hostwright.cli.watching import Counting, watch
from hostwright.common.errors import InputError
from hostwright.fleet import Fleet, Member

NEVER_SEEN = "no facts of it are stored yet: run invoke audit without --offline once"
STOPPED = "it was not looked at: the audit was stopped"
EVERY_HOST = "all"


def audit(call: Call) -> int:
    """``invoke audit``."""
    from hostwright.audit.reports.document import render_json
    from hostwright.audit.reports.table import show_audit

    outputs = Outputs.of(call.options)
    auditor = Auditor(call)
    details = bool(call["details"]) or len(auditor.members) == 1

    def once() -> tuple[int, RenderableType]:
        found, ages = auditor.look()
        if auditor.stopped:
            raise KeyboardInterrupt
        outputs.write(found, ages, auditor.memory)
        return exit_status(found), show_audit(found, ages, details=details)

    if call["watch"]:
        return watch(call["watch"], once)
    found, ages = auditor.look()
    outputs.write(found, ages, auditor.memory)
    if call["json"]:
        print(render_json(found))
    elif not outputs.on_stdout:
        console.make_console().print(show_audit(found, ages, details=details))
    return exit_status(found)


def doctor(call: Call) -> int:
    """``invoke doctor``."""
    from hostwright.audit.reports.diagnosis import show_diagnosis

    found, ages = Auditor(call).look()
    if call["json"]:
        print(json.dumps({"schema": SCHEMA, "hosts": [_diagnosis(host) for host in found.hosts]}))
    else:
        console.make_console().print(Group(*show_diagnosis(found.hosts, ages)))
    if any(host.status == "unread" for host in found.hosts):
        return FAILED
    return DIFFERS if any(host.findings for host in found.hosts) else AS_DESIRED


def _whole(text: str) -> int:
    """How many hosts at once; 0 where nobody said. Raises ``InputError``."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) < 10**6:
        raise InputError(f"found {text[:40]!r}, expected a number of hosts, such as 32", "--at-once")
    return int(text)


def exit_status(audit: FleetAudit) -> int:
    """1 where a host or a layer could not be read, 3 where something is not as desired, 0 else."""
    if any(layer.status == "unread" for host in audit.hosts for layer in host.layers):
        return FAILED
    return AS_DESIRED if all(host.status == "desired" for host in audit.hosts) else DIFFERS


def _diagnosis(host: HostAudit) -> dict[str, Any]:
    """What the doctor says of one host, as JSON values."""
    kept = ("host", "stack", "at", "status", "sentence", "findings", "not_checked")
    return {key: value for key, value in asdict(host).items() if key in kept}


class Auditor:
    """Looks at the hosts of one call, over and over where it is told to, and remembers what it saw."""

    def __init__(self, call: Call):
        self._call = call
        self._fleet: Fleet = call.fleet()
        options = call.options if call["hosts"] else {**call.options, "hosts": EVERY_HOST}
        self.members = Call(options).members(self._fleet)
        self._at_once = _whole(str(call.options.get("at_once", "")))
        self.stopped = False  #: by the operator, in the midst of the last look
        self._password = call.password()
        self.memory = Memory(self._fleet, self._password)

    def look(self) -> tuple[FleetAudit, Ages]:
        """One audit of all hosts, and since when things are so."""
        offline, inventory = bool(self._call.options.get("offline")), str(self._fleet.path)
        began, clock = now(), time.monotonic()
        hosts = self._stored() if offline else self._asked()
        took_s = 0.0 if offline else time.monotonic() - clock
        found = fleet_audit(hosts, inventory=inventory, began=began, took_s=took_s, offline=offline)
        if not offline:
            self.memory.add(found)
        return found, self.memory.ages()

    def _asked(self) -> list[HostAudit]:
        connections = Connections(self._password)
        by_name = {member.name: member for member in self.members}
        with Counting(by_name) as emit:

            def one(name: str) -> HostAudit:
                return self._one(by_name[name], connections, emit, sudo=not self._call["no_sudo"])

            results = on_each(tuple(by_name), one, stop=connections.close, at_once=self._at_once)
        self.stopped = bool(results.stopped_because)
        found = {host.host: host for host in results.values}
        sentences = {error.host: error.sentence for error in results.errors}
        return [
            found.get(member.name) or unread(member, sentences.get(member.name, STOPPED), now())
            for member in self.members
        ]

    def _one(self, member: Member, connections: Connections, emit: Emit, *, sudo: bool) -> HostAudit:
        found, facts = audit_host(member, connections.connect, sudo=sudo)
        if facts is not None:
            self.memory.keep(member.name, facts, datetime.fromisoformat(found.at))
        found = self.memory.clean(found)
        emit(Audited(member.name, found))
        return found

    def _stored(self) -> list[HostAudit]:
        """The same hosts, by the facts that the last audit of each stored."""
        hosts = []
        for member in self.members:
            stored = self.memory.facts(member.name)
            hosts.append(judged(member, *stored) if stored else unread(member, NEVER_SEEN, now()))
        return hosts
