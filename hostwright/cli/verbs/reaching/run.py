"""``invoke run``: one command of the operator on many hosts."""

from __future__ import annotations

import time

from hostwright.apply.commands.remote import LIMIT_S, RemoteCommand
from hostwright.apply.rollout.options import ChangeOptions
from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.opening import ask_password, open_fleet, targets_of
from hostwright.cli.views.reaching.commands import command_audience, show_commands
from hostwright.common import durations
from hostwright.common.errors import InputError

LONGEST_S = 86400.0  #: our choice: who runs longer things than a day wants a job of the host's own


def run(
    selection: Selection,
    connection: ConnectionOptions,
    change: ChangeOptions,
    words: tuple[str, ...],
    *,
    root: bool = False,
    timeout: str = "",
    force: bool = False,
    as_json: bool = False,
) -> int:
    """``invoke run``; ``words`` are the command's."""
    if not any(words):
        raise InputError("say which command, behind two dashes: invoke run --hosts gpu01 -- uptime", "--")
    if force and not root:
        raise InputError("goes with --root alone: without it, locks of hosts do not matter", "--force")
    command = RemoteCommand(words, root, _limit_s(timeout))
    fleet = open_fleet(selection, connection, force=force)
    targets = targets_of(fleet, selection, outside=True)
    password = ask_password(connection) if root else None
    began_s = time.monotonic()
    ended = fleet.run(targets, command, change=change, password=password, audience=command_audience())
    show_commands(command, ended, targets, took_s=time.monotonic() - began_s, as_json=as_json)
    return ended.status


def _limit_s(text: str) -> float:
    try:
        limit_s = durations.seconds(text) if text else LIMIT_S
    except ValueError as error:
        raise InputError(str(error), "--timeout") from error
    if limit_s > LONGEST_S:
        raise InputError(f"found {text}, expected at most {LONGEST_S / 3600:g}h", "--timeout")
    return limit_s
