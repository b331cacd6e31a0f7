"""``invoke ssh``: this machine's own ssh, as Hostwright connects to the host."""

from __future__ import annotations

import os
import sys

from hostwright.apply.commands.remote import RemoteCommand
from hostwright.cli.opening import open_fleet
from hostwright.cli.views.shared import warn
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.inventory import fold
from hostwright.transport.routing.sshcommand import ssh_command


def ssh(request: Request, name: str, words: tuple[str, ...] = ()) -> int:
    """``invoke ssh HOST``: this process becomes ssh, and its exit status that of ssh."""
    fleet = open_fleet(request)
    if request.strict:
        fleet.targets(name)
    chosen = fleet.select(name)
    if len(chosen) != 1:
        raise InputError(f"name one host: {name} are {fold([host.name for host in chosen])}", "ssh")
    (host,) = chosen
    if host.local:
        raise InputError(f"{host.name} is this machine (ansible_connection: local): there is no ssh to it", "ssh")
    command = RemoteCommand(words).text if words else ""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    call = ssh_command(host, fleet.options, command, terminal=bool(command) and terminal)
    if host.password:
        warn("the inventory's password is not handed to ssh, which asks for it")
    sys.stdout.flush()
    os.execvp(call[0], call)  # noqa: S606 - no shell is wanted
