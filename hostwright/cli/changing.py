"""Common steps of all verbs that change hosts: read options, ask for confirmation, run, show results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.limits import read_limits
from hostwright.cli.asking import who_is_asked
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password
from hostwright.cli.views.changing.outcomes import show_outcomes, show_plans
from hostwright.cli.views.shared import note
from hostwright.common.command import Command
from hostwright.common.errors import AS_DESIRED, DIFFERS, FAILED
from hostwright.common.request import Request
from hostwright.common.text import count
from hostwright.common.userpaths import expanded, place_for
from hostwright.fleet import Fleet, Targets
from hostwright.plan.planning import HostPlan

if TYPE_CHECKING:
    from hostwright.apply.host.outcome import Outcome
    from hostwright.apply.rollout.rollout import Results
    from hostwright.apply.run import RunResults
    from hostwright.apply.saved.signing import Signing
    from hostwright.plan.model import Plan

PROVISION = Command("provision")


def change(
    verb: str,
    fleet: Fleet,
    targets: Targets,
    request: Request,
    run: Callable[..., RunResults[Outcome]],
    *,
    goal: Goal = AS_WANTED,
    again: Command | None = None,
) -> int:
    """Change the hosts of ``targets`` with ``run``, and show the results. Return the exit status.

    ``run`` is a method of ``fleet`` that accepts ``ask``, ``password`` and ``view``. With ``--check``, only show the
    plan for ``goal``, and the command ``again`` that applies this plan (default: ``verb`` without options).
    """
    if request.check:
        return show_plan(fleet, targets, request, goal=goal, then=again or Command(verb))
    from hostwright.cli.timeline import drawn
    from hostwright.cli.views.progress import run_view

    read_limits(request, len(targets))  # mistakes are reported before the operator types a password
    password = ask_password(request)
    if ask := who_is_asked(request):
        note(f"planning for {count(len(targets), 'host')} before asking for confirmation")
    with drawn(request.timeline, run_view(request)) as view:
        began_s = time.monotonic()
        ended = shown(
            lambda: run(ask=ask, password=password, view=view),
            lambda ended: show_outcomes(
                verb,
                targets,
                ended,
                proved=bool(request.prove),
                took_s=time.monotonic() - began_s,
                as_json=request.json,
            ),
        )
    return ended.status


def show_plan(
    fleet: Fleet,
    targets: Targets,
    request: Request,
    *,
    goal: Goal = AS_WANTED,
    out: str = "",
    brief: bool = False,
    then: Command = PROVISION,
) -> int:
    """Probe the hosts of ``targets``, and print the changes that lead to ``goal``. Return the exit status.

    ``out`` is the file in which the plans are saved; without ``out``, no file is written. ``brief`` omits the details
    of each layer. ``then`` is the command that applies the plans, printed at the end.
    """
    if out:
        from hostwright.apply.journal.redaction import Redactor, secrets_in
        from hostwright.apply.saved import (
            savedplans,
            signing,
        )

        file = place_for(out, "--out", "a saved plan")
        signed = _signing(fleet, targets)
        signing.check_can_sign(signed, file)
    password = ask_password(request)
    saved = ""

    def look() -> Results[HostPlan]:
        nonlocal saved
        looked_at = fleet.plan(targets, goal=goal, password=password)
        if out:
            redactor = Redactor(secrets_in(fleet.inventory.hosts.values(), targets))
            savedplans.save(file, [each.plan for each in looked_at.values], redactor, signed)
            saved = out
        return looked_at

    results = shown(
        look,
        lambda results: show_plans(
            targets, results, brief=brief, then=then, saved=saved, store=fleet.store, as_json=request.json
        ),
    )
    if results.errors:
        return FAILED
    return AS_DESIRED if all(looked_at.plan.empty for looked_at in results.values) else DIFFERS


def saved_plans(fleet: Fleet, targets: Targets, file: str) -> Mapping[str, Plan]:
    """Load the plans that ``plan --out`` saved in ``file``, as host → plan.

    Verifies signatures if the site requires them.
    """
    from hostwright.apply.saved import savedplans

    return savedplans.load_for(targets.by_name, expanded(file), _signing(fleet, targets).signers)


def _signing(fleet: Fleet, targets: Targets) -> Signing:
    from hostwright.apply.saved.signing import signing_of

    return signing_of((target.host for target in targets), fleet.site.root)
