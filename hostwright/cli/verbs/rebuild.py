"""``invoke rebuild``: hosts from whatever state they are in to verified and back in service, each phase timed."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import cast

from hostwright.apply.rollout.limits import read_limits
from hostwright.cli import console
from hostwright.cli.asking import ask, can_ask, of_decisions, refuse_unasked, reinstalled
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password, open_fleet, refuse_strangers, targets_of
from hostwright.cli.verbs.runs import check_timeline, drawn
from hostwright.cli.views.progress import run_audience
from hostwright.cli.views.rebuilding.rebuilds import announce, show_decisions, show_rebuilt
from hostwright.cli.views.rebuilding.times import times_table
from hostwright.cli.views.shared import print_document
from hostwright.common.errors import AS_DESIRED, DIFFERS, FAILED, InputError
from hostwright.common.request import Request
from hostwright.inventory.patterns import counted
from hostwright.plan.host.locks import read_duration
from hostwright.rebuild import report
from hostwright.rebuild.rebuild import STARTS, Start
from hostwright.rebuild.run import Decisions

_WIPES = "this rebuild may install a new operating system, which overwrites disks"


def rebuild(request: Request, *, start: str = "") -> int:
    """``invoke rebuild``; ``start`` is the way to begin with, whatever is found."""
    check_timeline(request)
    first = _start(start)
    if first == "reinstall" and not request.check:
        refuse_unasked(_WIPES, yes=request.yes, as_json=request.json)
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    read_limits(request, len(targets))  # mistakes are reported before anybody types a password
    password = ask_password(request)
    if request.check:
        decisions = shown(
            lambda: fleet.decide(targets, first, request, password=password),
            lambda decisions: show_decisions(targets, decisions, start=first, as_json=request.json),
        )
        return _status(decisions)

    def decided(decisions: Decisions) -> None:
        if not request.json:
            announce(decisions)
        if wiped := reinstalled(decisions.of):
            refuse_unasked(f"{_WIPES} ({counted(wiped)})", yes=request.yes, as_json=request.json)
        if not request.yes and can_ask(as_json=request.json):
            ask(of_decisions(decisions.of), len(decisions.of))

    with drawn(request.timeline, run_audience(request)) as audience:
        began_s = time.monotonic()
        rebuilt = shown(
            lambda: fleet.rebuild(targets, first, request, password=password, audience=audience, decided=decided),
            lambda rebuilt: show_rebuilt(targets, rebuilt, took_s=time.monotonic() - began_s, as_json=request.json),
        )
    return rebuilt.status


def rebuild_report(request: Request) -> int:
    """``invoke rebuild --report``: the rebuilds that this machine remembers, by phase."""
    fleet = open_fleet(request)
    earliest = datetime.now(UTC) - read_duration(request.since, "--since") if request.since else None
    rebuilds = fleet.rebuilds(earliest)
    if not request.hosts:
        refuse_strangers(fleet)
    else:
        wanted = targets_of(fleet, request).by_name
        rebuilds = tuple(record for record in rebuilds if record.host in wanted)
    if request.json:
        print_document("times", report.document(rebuilds))
    else:
        console.make_console().print(times_table(rebuilds))
    return AS_DESIRED


def _status(decisions: Decisions) -> int:
    if decisions.errors or any(decision.refusal for decision in decisions.of.values()):
        return FAILED
    return AS_DESIRED if all(decision.way == "nothing" for decision in decisions.of.values()) else DIFFERS


def _start(text: str) -> Start | None:
    if text and text not in STARTS:
        raise InputError(f"found {text!r:.40}, expected one of {', '.join(STARTS)}", "--from")
    return cast(Start, text) or None
