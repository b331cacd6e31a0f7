"""What a verb was given, and what that leads to: inventory, hosts, password, connections."""

from __future__ import annotations

import getpass
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from hostwright import transport
from hostwright.apply.events import Emit, Observed
from hostwright.cli import console
from hostwright.common.errors import HostwrightError, InputError, Stopped
from hostwright.common.secret import Secret
from hostwright.fleet import DEFAULT_INVENTORY, Fleet, Member
from hostwright.plan.model import Plan
from hostwright.plan.observing import observe
from hostwright.plan.planning import Desired, make_plan
from hostwright.transport.rootshell import RootShell

#: ``@`` set → the status of the last audit
AUDIT_SETS = {"drifted": "drift", "failing": "failing", "unread": "unread"}
CUT = "the run was interrupted; what runs on the host goes on"
AS_DESIRED, FAILED, BAD_INPUT, DIFFERS, INTERRUPTED = 0, 1, 2, 3, 130


@dataclass(frozen=True)
class Call:
    """One verb's options, with what they lead to."""

    options: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    def fleet(self) -> Fleet:
        """The inventory that was named, with the variables of the command line."""
        path = Path(self["inventory"]) if self["inventory"] else DEFAULT_INVENTORY
        policy = transport.Options(host_keys="accept-new" if self.options.get("accept_new") else "strict")
        force = bool(self.options.get("force"))
        fleet = Fleet.load(path, settings=self.settings(), options=policy, force=force)
        for note in fleet.inventory.notes:
            console.make_console(stderr=True).print(Text(console.printable(note), style="yellow"))
        return fleet

    def settings(self) -> dict[str, str]:
        """``--var KEY=VALUE`` as a mapping."""
        pairs = [pair.partition("=") for pair in self.options.get("var", ())]
        for key, sign, _ in pairs:
            if not sign or not key:
                raise InputError(f"expected KEY=VALUE, found {key!r}", "--var")
        return {key: value for key, _, value in pairs}

    def members(self, fleet: Fleet) -> tuple[Member, ...]:
        """The hosts that were named, narrowed to ``--roles``."""
        if not self["hosts"]:
            raise InputError("say which hosts: --hosts gpu01,gpu02, --hosts @group or --hosts all", "--hosts")
        roles = [name.strip() for name in self.options.get("roles", "").split(",") if name.strip()]
        named_sets = _named_sets(fleet, self["hosts"]) if "@" in self["hosts"] else None
        return fleet.members(self["hosts"], roles, named_sets)

    def password(self) -> Secret | None:
        """The sudo password, asked for once."""
        if not self.options.get("ask_become_pass"):
            return None
        return Secret(getpass.getpass("sudo password: ", stream=sys.stderr))


def _named_sets(fleet: Fleet, pattern: str) -> dict[str, set[str]]:
    """What ``@failed`` and its kin stand for: the hosts of the last run on this inventory, by what became of them."""
    from hostwright.apply.journal import check_sets, named_sets, state_root

    sets = named_sets(state_root(), fleet.path)
    check_sets(pattern, sets, fleet.inventory.groups)
    return {**sets, **(_audited_sets(fleet) if any(f"@{name}" in pattern for name in AUDIT_SETS) else {})}


def _audited_sets(fleet: Fleet) -> dict[str, set[str]]:
    """What ``@drifted`` and its kin stand for: the hosts that the last audit of each found so."""
    from hostwright.apply.journal import state_root
    from hostwright.audit.history import History

    latest = History(state_root()).latest(fleet.path)
    if not latest:
        raise InputError("no audit of this inventory is recorded yet: run invoke audit first", "--hosts")
    return {name: {host for host, now in latest.items() if now == status} for name, status in AUDIT_SETS.items()}


class Connections:
    """The open root shells of a run, so that Ctrl-C can cut all of them."""

    def __init__(self, password: Secret | None):
        self._password = password
        self._open: dict[int, RootShell] = {}
        self._lock = threading.Lock()
        self._cut = False

    def connect(self, member: Member) -> RootShell:
        """A new root shell on a host; sudo is given the password that was asked for, else the inventory's."""
        if self._cut:
            raise Stopped(member.name, CUT)
        shell = member.connect(self._password)
        with self._lock:
            self._open[id(shell)] = shell
        if self._cut:  # while it was being opened
            shell.close()
            raise Stopped(member.name, CUT)
        return shell

    def close(self) -> None:
        """Cut everything, for good: nobody connects again."""
        self._cut = True
        with self._lock:
            for shell in self._open.values():
                with suppress(HostwrightError):
                    shell.close()
            self._open.clear()

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What nobody may write down: the password that was asked for."""
        return (self._password,) if self._password else ()

    def password(self, member: Member) -> Secret | None:
        """The sudo password for a host: asked for, else the inventory's."""
        return self._password or member.host.become_password

    def look(self, member: Member, emit: Emit = lambda _: None, *, desired: Desired | None = None) -> Plan:
        """Observe and plan a host over a connection of its own; ``desired`` instead of what its stack wants."""
        wanted = desired or member.desired
        with self.connect(member) as shell:
            facts = observe(shell, wanted)
        plan = make_plan(wanted, facts, datetime.now(UTC))
        emit(Observed(member.name, plan, facts))
        return plan
