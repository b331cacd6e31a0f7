"""``invoke run``: one command of the operator on many hosts."""

from __future__ import annotations

import time

from hostwright.apply.commands.remote import LIMIT_S, RemoteCommand
from hostwright.cli.opening import ask_password, open_fleet, targets_of
from hostwright.cli.views.reaching.commands import command_audience, show_commands
from hostwright.common import durations
from hostwright.common.errors import InputError
from hostwright.common.request import Request

LONGEST_S = 86400.0  #: our choice: who runs longer things than a day wants a job of the host's own


def run(request: Request, words: tuple[str, ...], *, root: bool = False, timeout: str = "") -> int:
    """``invoke run``; ``words`` are the command's."""
    if not any(words):
        raise InputError("say which command, behind two dashes: invoke run --hosts gpu01 -- uptime", "--")
    if request.force and not root:
        raise InputError("goes with --root alone: without it, locks of hosts do not matter", "--force")
    command = RemoteCommand(words, root, _limit_s(timeout))
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = ask_password(request) if root else None
    began_s = time.monotonic()
    ended = fleet.run(targets, command, request, password=password, audience=command_audience(request))
    show_commands(command, ended, targets, took_s=time.monotonic() - began_s, as_json=request.json)
    return ended.status


def _limit_s(text: str) -> float:
    try:
        limit_s = durations.seconds(text) if text else LIMIT_S
    except ValueError as error:
        raise InputError(str(error), "--timeout") from error
    if limit_s > LONGEST_S:
        raise InputError(f"found {text}, expected at most {LONGEST_S / 3600:g}h", "--timeout")
    return limit_s
