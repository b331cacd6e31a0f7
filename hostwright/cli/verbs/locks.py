"""``invoke lock`` and ``invoke unlock``: hosts that nobody may change for a while. Read-only verbs still work."""

from __future__ import annotations

from collections.abc import Callable

from hostwright.apply.locking.hostlocks import HostLocks, read_reason
from hostwright.apply.rollout.rollout import Results
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password, open_fleet, targets_of
from hostwright.cli.views.locks import show_locks
from hostwright.common.errors import AS_DESIRED, FAILED
from hostwright.common.request import Request
from hostwright.plan.host.locks import DEFAULT_FOR, read_duration


def lock(request: Request, *, reason: str, lasts: str = "") -> int:
    """``invoke lock``: lock hosts for a reason and a time."""
    why, how_long = read_reason(reason), read_duration(lasts or DEFAULT_FOR)
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = ask_password(request)
    return _shown(
        lambda: fleet.lock(targets, why, how_long, force=request.force, password=password), as_json=request.json
    )


def locks(request: Request) -> int:
    """``invoke lock --list``: existing locks."""
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = ask_password(request)
    return _shown(lambda: fleet.locks(targets, password=password), as_json=request.json)


def unlock(request: Request) -> int:
    """``invoke unlock``."""
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = ask_password(request)
    return _shown(lambda: fleet.unlock(targets, force=request.force, password=password), as_json=request.json)


def _shown(work: Callable[[], Results[HostLocks]], *, as_json: bool) -> int:
    results = shown(work, lambda results: show_locks(results, as_json=as_json))
    return FAILED if results.errors else AS_DESIRED
