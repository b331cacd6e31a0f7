"""``invoke verify``: every layer checked by what it does."""

from __future__ import annotations

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.opening import ask_password, members_of, open_fleet
from hostwright.cli.views.progress import run_audience
from hostwright.cli.views.verdicts import show_verdicts


def verify(selection: Selection, connection: ConnectionOptions, *, as_json: bool = False) -> int:
    """``invoke verify``."""
    fleet = open_fleet(selection, connection)
    members = members_of(fleet, selection)
    ended = fleet.verify(members, password=ask_password(connection), audience=run_audience(as_json=as_json))
    show_verdicts(members, ended.results, as_json=as_json)
    return ended.status
