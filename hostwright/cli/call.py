"""What a verb was given, and what that leads to: inventory, hosts, password, connections."""

from __future__ import annotations

import getpass
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from hostwright import applying, console, transport
from hostwright.errors import HostwrightError, InputError
from hostwright.fleet import DEFAULT_INVENTORY, Fleet, Member
from hostwright.model import Plan
from hostwright.planning import make_plan
from hostwright.secret import Secret
from hostwright.transport import Session

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
        fleet = Fleet.load(path, settings=self.settings(), options=policy)
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
        return fleet.members(self["hosts"], roles)

    def password(self) -> Secret | None:
        """The sudo password, asked for once."""
        if not self.options.get("ask_become_pass"):
            return None
        return Secret(getpass.getpass("sudo password: ", stream=sys.stderr))


class Connections:
    """The open sessions of a run, so that Ctrl-C can cut all of them."""

    def __init__(self, password: Secret | None):
        self._password = password
        self._open: dict[int, Session] = {}
        self._lock = threading.Lock()

    def connect(self, member: Member) -> Session:
        """A new session to a host."""
        session = member.connect()
        with self._lock:
            self._open[id(session)] = session
        return session

    def close(self) -> None:
        """Cut everything."""
        with self._lock:
            for session in self._open.values():
                with suppress(HostwrightError):
                    session.close()
            self._open.clear()

    def password(self, member: Member) -> Secret | None:
        """The sudo password for a host: asked for, else the inventory's."""
        return self._password or member.host.become_password

    def look(self, member: Member) -> Plan:
        """Observe and plan a host over a connection of its own."""
        with self.connect(member) as session:
            return make_plan(member.desired, applying.observe(session, member.desired, self.password(member)))
