"""``invoke plan``, ``provision``, ``remove``, ``rollback``: what differs, and hosts brought to what is desired."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.limits import read_limits
from hostwright.cli import console
from hostwright.cli.asking import refuse_unasked, who_is_asked
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password, open_fleet, targets_of
from hostwright.cli.views.changing.outcomes import intents, show_outcomes, show_plans
from hostwright.cli.views.shared import errors_json, print_document, show_errors, show_next, warn
from hostwright.common.errors import AS_DESIRED, DIFFERS, FAILED
from hostwright.common.quoting import sh
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.common.text import printable
from hostwright.common.userpaths import expanded, place_for
from hostwright.fleet import Fleet, Targets
from hostwright.plan.planning import HostPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hostwright.apply.host.outcome import Outcome
    from hostwright.apply.rollout.recording import Audience, RunResults
    from hostwright.apply.rollout.rollback import WayBack
    from hostwright.apply.rollout.rollout import Results
    from hostwright.apply.saved.signing import Signing
    from hostwright.plan.model import Plan

ALL_OR_NONE = "nothing was changed: either all of these hosts go back, or none"


def plan(request: Request, *, out: str = "", summary: bool = False, then: str = "provision", more: str = "") -> int:
    """``invoke plan``; ``out`` names a file for the plans, ``summary`` leaves out what is within a layer. What is
    planned is done by the verb ``then`` with ``more`` options."""
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    return _plan(fleet, targets, request, out=out, brief=summary, then=then, more=more)


def _plan(
    fleet: Fleet,
    targets: Targets,
    request: Request,
    *,
    goal: Goal = AS_WANTED,
    out: str = "",
    brief: bool = False,
    then: str = "",
    more: str = "",
) -> int:
    """Probe hosts and show what differs from the goal, which the verb ``then`` with ``more`` options brings them to;
    the exit status."""
    if out:
        from hostwright.apply.journal.redaction import Redactor, secrets_in
        from hostwright.apply.saved import (  # what a plan needs no other way is imported where it is used
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
            targets, results, brief=brief, then=then, more=more, saved=saved, store=fleet.store, as_json=request.json
        ),
    )
    if results.errors:
        return FAILED
    return AS_DESIRED if all(looked_at.plan.empty for looked_at in results.values) else DIFFERS


def provision(request: Request) -> int:
    """``invoke provision``."""
    from hostwright.cli.verbs.runs import check_timeline, drawn  # not for those who only plan

    check_timeline(request)
    if request.check:
        return plan(request)
    fleet = open_fleet(request)
    if request.resume:
        last, request = fleet.resume(request, "" if request.resume is True else str(request.resume))
        _say(f"resuming {last}: {request.hosts.replace(',', ', ')}")
        fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    plans = _saved_plans(fleet, targets, request.plan) if request.plan else {}
    password = _password(request, targets)
    ask = who_is_asked(request, len(targets))
    with drawn(request.timeline, _audience(request)) as audience:
        return _run(
            "provision",
            lambda: fleet.provision(targets, request, saved=plans, ask=ask, password=password, audience=audience),
            targets,
            request,
            proved=bool(request.prove),
        )


def remove(request: Request) -> int:
    """``invoke remove``."""
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    if not request.check:
        refuse_unasked("`remove` takes layers off hosts", yes=request.yes, as_json=request.json)
    removal = fleet.removal(targets)
    for sentence in removal.notes:
        warn(sentence)
    if request.check:
        return _plan(fleet, targets, request, goal=removal, then="remove")
    password, audience = _password(request, targets), _audience(request)
    ask = who_is_asked(request, len(targets))
    return _run(
        "remove",
        lambda: fleet.remove(targets, removal, request, ask=ask, password=password, audience=audience),
        targets,
        request,
    )


def rollback(request: Request, *, to: str = "") -> int:
    """``invoke rollback``; ``to`` is a stack, or how a release's date or digest begins."""
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    ways = fleet.ways_back(targets, to)
    if ways.errors or ways.untouched:
        return _refuse(ways, targets, to, as_json=request.json)
    for sentence in intents(ways.values):
        warn(sentence)
    targets = replace(targets, chosen=tuple(way.back for way in ways.values))
    request = replace(request, own={"to": to})
    if request.check:
        return _plan(fleet, targets, request, then="rollback")
    password, audience = _password(request, targets), _audience(request)
    ask = who_is_asked(request, len(targets))
    return _run(
        "rollback",
        lambda: fleet.rollback(targets, request, ask=ask, password=password, audience=audience),
        targets,
        request,
    )


def reach(
    verb: str,
    goal: Goal,
    fleet: Fleet,
    targets: Targets,
    request: Request,
    *,
    files: Mapping[str, Path],
    again: str = "",
) -> int:
    """A role's own verb that brings hosts to a goal; see ``Fleet.reach``. ``again`` are its options, as they are typed
    after a ``check``."""
    if request.check:
        return _plan(fleet, targets, request, goal=goal, then=verb, more=again)
    password, audience = _password(request, targets), _audience(request)

    ask = who_is_asked(request, len(targets))
    return _run(
        verb,
        lambda: fleet.reach(verb, targets, goal, request, files=files, ask=ask, password=password, audience=audience),
        targets,
        request,
    )


def _run(
    verb: str, run: Callable[[], RunResults[Outcome]], targets: Targets, request: Request, *, proved: bool = False
) -> int:
    """Change hosts and show what came of them, and with ``proved`` of their proofs; the exit status."""
    began = time.monotonic()
    ended = shown(
        run,
        lambda ended: show_outcomes(
            verb, targets, ended, proved=proved, took_s=time.monotonic() - began, as_json=request.json
        ),
    )
    return ended.status


def _refuse(ways: Results[WayBack], targets: Targets, to: str, *, as_json: bool) -> int:
    """One host that cannot go back keeps all of them where they are."""
    if as_json:
        left = {"untouched": list(ways.names), "stopped_because": ALL_OR_NONE}
        print_document("provision", {"run": None, "hosts": [], "errors": errors_json(ways.errors), **left})
    show_errors(ways.errors)
    warn(ALL_OR_NONE)
    if (able := [way.now.name for way in ways.values]) and not as_json:
        show_next(console.make_console(), "rollback", able, targets, sh(" --to %s", to) if to else "")
    return FAILED


def _saved_plans(fleet: Fleet, targets: Targets, file: str) -> Mapping[str, Plan]:
    """The plans of a file of ``plan --out``, by host, signed where the site asks for that."""
    from hostwright.apply.saved import savedplans

    return savedplans.load_for(targets.by_name, expanded(file), _signing(fleet, targets).signers)


def _signing(fleet: Fleet, targets: Targets) -> Signing:
    """Whether plans for these hosts are signed, and by whom."""
    from hostwright.apply.saved.signing import signing_of

    return signing_of((target.host for target in targets), fleet.site.root)


def _password(request: Request, targets: Targets) -> Secret | None:
    """The sudo password, prompted for once the options are known to be valid. Raises ``InputError``."""
    read_limits(request, len(targets))
    return ask_password(request)


def _say(sentence: str) -> None:
    console.make_console(stderr=True).print(Text(printable(sentence)))


def _audience(request: Request) -> Audience:
    """The view of a run. A plan needs none, and does not wait for its imports."""
    from hostwright.cli.views.progress import run_audience

    return run_audience(request)
