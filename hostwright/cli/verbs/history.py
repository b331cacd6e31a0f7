"""``invoke audit.history`` and ``invoke audit.diff``: what audits saw, over time."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta

from hostwright.audit.auditing import now
from hostwright.cli import console
from hostwright.cli.opening import open_fleet, targets_of
from hostwright.cli.views.history import changes, timelines
from hostwright.cli.views.shared import print_document
from hostwright.common import durations
from hostwright.common.errors import AS_DESIRED, InputError
from hostwright.common.request import Request


def history(request: Request) -> int:
    """``invoke audit.history``; ``since`` is how far back, such as 7d; ``details``: a line for each change."""
    fleet = open_fleet(request)
    earliest = _since(request.since)
    histories = fleet.history(targets_of(fleet, request), earliest)
    if request.json:
        print_document("history", {"hosts": [asdict(host_history) for host_history in histories]})
        return AS_DESIRED
    out = console.make_console()
    for shown in timelines(histories, details=request.details):
        out.print(shown)
    return AS_DESIRED


def diff(request: Request) -> int:
    """``invoke audit.diff``; of all hosts where none are named."""
    fleet = open_fleet(request)
    earliest = _since(request.since)
    if earliest is None:
        raise InputError("give how far back to look: --since 7d", "--since")
    difference = fleet.changes(earliest, targets_of(fleet, request) if request.hosts else None)
    if request.json:
        print_document("diff", asdict(difference))
    else:
        console.make_console().print(changes(difference))
    return AS_DESIRED


def _since(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return now() - timedelta(seconds=durations.seconds(text))
    except ValueError as error:
        raise InputError(str(error), "--since") from error
