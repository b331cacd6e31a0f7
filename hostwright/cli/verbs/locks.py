"""``invoke lock`` and ``invoke unlock``: hosts that nobody may change for a while. Read-only verbs still work."""

from __future__ import annotations

from collections.abc import Callable

from hostwright.apply.locking.hostlocks import HostLocks, read_reason
from hostwright.apply.rollout.rollout import Results
from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password, open_fleet, targets_of
from hostwright.cli.views.locks import show_locks
from hostwright.common.errors import AS_DESIRED, FAILED
from hostwright.plan.host.locks import DEFAULT_FOR, read_duration


def lock(
    selection: Selection,
    connection: ConnectionOptions,
    *,
    reason: str,
    lasts: str = "",
    force: bool = False,
    as_json: bool = False,
) -> int:
    """``invoke lock``: lock hosts for a reason and a time."""
    why, how_long = read_reason(reason), read_duration(lasts or DEFAULT_FOR)
    fleet = open_fleet(selection, connection, force=force)
    targets = targets_of(fleet, selection, outside=True)
    password = ask_password(connection)
    return _shown(lambda: fleet.lock(targets, why, how_long, force=force, password=password), as_json=as_json)


def locks(selection: Selection, connection: ConnectionOptions, *, as_json: bool = False) -> int:
    """``invoke lock --list``: existing locks."""
    fleet = open_fleet(selection, connection)
    targets = targets_of(fleet, selection, outside=True)
    password = ask_password(connection)
    return _shown(lambda: fleet.locks(targets, password=password), as_json=as_json)


def unlock(selection: Selection, connection: ConnectionOptions, *, force: bool = False, as_json: bool = False) -> int:
    """``invoke unlock``."""
    fleet = open_fleet(selection, connection, force=force)
    targets = targets_of(fleet, selection, outside=True)
    password = ask_password(connection)
    return _shown(lambda: fleet.unlock(targets, force=force, password=password), as_json=as_json)


def _shown(work: Callable[[], Results[HostLocks]], *, as_json: bool) -> int:
    results = shown(work, lambda results: show_locks(results, as_json=as_json))
    return FAILED if results.errors else AS_DESIRED
