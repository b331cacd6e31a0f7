"""Verbs that change hosts: install their stack, or remove layers."""

from __future__ import annotations

from functools import partial

from hostwright.cli.tasks.options import CHANGING, PROVISION, verb
from hostwright.common.command import Command
from hostwright.common.request import Request

TITLE = "Change"


@verb(*PROVISION, check=f"only show the plan (the same as {Command('plan')})")
def provision(request: Request) -> int:
    """Install the stack on hosts, then probe them again to confirm the result.

    hostwright provision gpu01
    hostwright provision all --canary 1 --batch 10% --max-fail 5
    """
    from hostwright.cli.changing import change, saved_plans
    from hostwright.cli.opening import open_fleet, targets_of
    from hostwright.cli.timeline import check_timeline
    from hostwright.cli.views.shared import note

    check_timeline(request)
    fleet = open_fleet(request)
    if request.resume and not request.check:
        last, request = fleet.resume(request, "" if request.resume is True else str(request.resume))
        note(f"resuming {last}: {request.hosts.replace(',', ', ')}")
        fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    saved = saved_plans(fleet, targets, request.plan) if request.plan and not request.check else {}
    return change("provision", fleet, targets, request, partial(fleet.provision, targets, request, saved=saved))


@verb(*CHANGING, "check", "yes")
def remove(request: Request) -> int:
    """Remove layers from hosts, the last layer first; keep software that others installed.

    hostwright remove gpu01 --roles driver
    """
    from hostwright.cli.asking import refuse_unasked
    from hostwright.cli.changing import change
    from hostwright.cli.opening import open_fleet, targets_of
    from hostwright.cli.views.shared import warn

    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    if not request.check:
        refuse_unasked("`remove` removes layers from hosts", yes=request.yes, as_json=request.json)
    removal = fleet.removal(targets)
    for sentence in removal.notes:
        warn(sentence)
    return change("remove", fleet, targets, request, partial(fleet.remove, targets, removal, request), goal=removal)
