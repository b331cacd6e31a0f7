"""Verbs that run an operator's command on hosts, or log in to a host."""

from __future__ import annotations

import sys

from hostwright.cli.tasks.options import GRADUAL, REACHED, READ, verb
from hostwright.common.request import Request

#: maximum value of --timeout in seconds (our choice). Longer work should be a job on the host.
LONGEST_S = 86400.0


@verb(
    *REACHED,
    *GRADUAL,
    "notify",
    root="run the command as root; without --root, it cannot become root",
    timeout="stop the command on a host after this time: 30s, 10m (default: 60s)",
    force="with --root: run the command also on locked hosts",
)
def run(request: Request, root: bool = False, timeout: str = "") -> int:
    """Run one command on hosts, as in `run --hosts gpu01 -- uptime -p`.

    Equal outputs are shown once. Without --root, the command runs as the login user and cannot become root: sudo and
    other setuid programs do not give it root rights, and a host whose login user is root refuses it. This is not a
    sandbox: the command may change all files of the login user and of its groups. Several words after -- are a program
    and its arguments, without a shell; a single word is a line for /bin/sh: -- 'lsmod | wc -l'. The command has an
    empty standard input and no terminal.

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
            f"no command is given; write it after two dashes: {Command('run', hosts='gpu01', behind=('uptime',))}", "--"
        )
    if request.force and not root:
        raise InputError(
            "works only with --root, since only commands as root heed locks; add --root or remove --force", "--force"
        )
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


@verb(*READ, "accept_new", host="the host, by its name in the inventory")
def ssh(request: Request, host: str) -> int:
    """Log in to a host with ssh, or run a command there: `ssh gpu01 -- COMMAND`.

    Address, port, user, key, jump hosts and known_hosts come from the inventory. A host with an unknown key is refused.
    ssh itself prompts for a password if it needs one. The session is not recorded.

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
        raise InputError(f"{host} selects {fold([each.name for each in chosen])}; name one host", "ssh")
    (only,) = chosen
    if only.local:
        raise InputError(f"{only.name} is this machine (ansible_connection: local); use a shell instead", "ssh")
    words = _typed_command()
    command = RemoteCommand(words).text if words else ""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    call = ssh_command(only, fleet.options, command, terminal=bool(command) and terminal)
    if only.password:
        warn("the password in the inventory is not passed to ssh; enter it at the prompt")
    sys.stdout.flush()
    os.execvp(call[0], call)  # noqa: S606 - no shell is wanted


def _typed_command() -> tuple[str, ...]:
    """Return the words after ``--`` unchanged, because Invoke would join them with blanks."""
    return tuple(sys.argv[sys.argv.index("--") + 1 :]) if "--" in sys.argv else ()
