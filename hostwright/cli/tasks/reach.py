"""Verbs that reach hosts for what the operator wants to type there: one command on many, a login on one."""

from __future__ import annotations

import sys

from hostwright.cli.tasks.options import GRADUAL, REACHED, READ, verb
from hostwright.common.request import Request

LONGEST_S = 86400.0  #: our choice: who runs longer things than a day wants a job of the host's own


@verb(
    *REACHED,
    *GRADUAL,
    "notify",
    root="run the command as root; without it, it cannot become root",
    timeout="end the command on a host that takes longer: 30s, 10m (default: 60s)",
    force="with --root: also on hosts that somebody has locked",
)
def run(request: Request, root: bool = False, timeout: str = "") -> int:
    """Run one command on hosts, as in `run --hosts gpu01 -- uptime -p`; equal outputs are shown once.

    Without --root it runs as the login user and cannot become root: sudo and other setuid programs give it nothing, and
    a host whose login user is root refuses it. That is no sandbox: it may still change what is that user's own, such as
    their files, and what their groups may. Several words after -- are a program and its arguments, which no shell
    reads; a single one is a line for /bin/sh: -- 'lsmod | wc -l'. It has nothing to read and no terminal.

    hostwright run --hosts gpu01,gpu02 -- uname -r
    hostwright run --hosts @rack3 --root --timeout 5m -- du -sh /var/log
    """
    import time

    from hostwright.apply.commands.remote import RemoteCommand
    from hostwright.cli.opening import ask_password, open_fleet, targets_of
    from hostwright.cli.views.reaching.commands import CommandView, show_commands
    from hostwright.common.command import Command
    from hostwright.common.errors import InputError

    words = _typed_command()
    if not any(words):
        raise InputError(
            f"say which command, behind two dashes: {Command('run', hosts='gpu01', behind=('uptime',))}", "--"
        )
    if request.force and not root:
        raise InputError("goes with --root alone: without it, locks of hosts do not matter", "--force")
    command = RemoteCommand(words, root, _limit_s(timeout))
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = ask_password(request) if root else None
    began_s = time.monotonic()
    ended = fleet.run(targets, command, request, password=password, view=CommandView())
    show_commands(command, ended, targets, took_s=time.monotonic() - began_s, as_json=request.json)
    return ended.status


def _limit_s(text: str) -> float:
    from hostwright.apply.commands.remote import LIMIT_S
    from hostwright.common import durations
    from hostwright.common.errors import InputError

    try:
        limit_s = durations.seconds(text) if text else LIMIT_S
    except ValueError as error:
        raise InputError(str(error), "--timeout") from error
    if limit_s > LONGEST_S:
        raise InputError(f"found {text}, expected at most {LONGEST_S / 3600:g}h", "--timeout")
    return limit_s


@verb(*READ, "accept_new", host="the host, as the inventory names it")
def ssh(request: Request, host: str) -> int:
    """Log in to a host with this machine's ssh, as Hostwright does: `ssh gpu01`, or `ssh gpu01 -- COMMAND`.

    Address, port, user, key, jump hosts and known_hosts are those of the inventory; a host whose key is not known is
    refused. ssh itself asks for a password where it needs one. What is done there is not recorded.

    hostwright ssh gpu01
    hostwright ssh gpu01 -- df -h /
    """
    import os

    from hostwright.apply.commands.remote import RemoteCommand
    from hostwright.cli.opening import open_fleet
    from hostwright.cli.views.shared import warn
    from hostwright.common.errors import InputError
    from hostwright.inventory import fold
    from hostwright.transport.routing.sshcommand import ssh_command

    fleet = open_fleet(request)
    if request.strict:
        fleet.targets(host)
    chosen = fleet.select(host)
    if len(chosen) != 1:
        raise InputError(f"name one host: {host} are {fold([each.name for each in chosen])}", "ssh")
    (only,) = chosen
    if only.local:
        raise InputError(f"{only.name} is this machine (ansible_connection: local): there is no ssh to it", "ssh")
    words = _typed_command()
    command = RemoteCommand(words).text if words else ""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    call = ssh_command(only, fleet.options, command, terminal=bool(command) and terminal)
    if only.password:
        warn("the inventory's password is not handed to ssh, which asks for it")
    sys.stdout.flush()
    os.execvp(call[0], call)  # noqa: S606 - no shell is wanted


def _typed_command() -> tuple[str, ...]:
    """The words after ``--``. Invoke joins them with spaces, and ``'a b'`` would become two words."""
    return tuple(sys.argv[sys.argv.index("--") + 1 :]) if "--" in sys.argv else ()
