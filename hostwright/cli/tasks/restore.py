"""Verbs that bring hosts back to a working state: rebuild, rollback, trust, power."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostwright.cli.tasks.options import CHANGING, NAMED, REACHED, verb
from hostwright.common.request import Request

if TYPE_CHECKING:
    from hostwright.rebuild.rebuild import Start

TITLE = "Restore"


@verb(
    *CHANGING,
    "yes",
    "timeline",
    from_="start with this method despite the diagnosis: repair, relayer or reinstall",
    report="show the duration of rebuilds by phase: median and 95th percentile of all hosts",
    check="only diagnose, and show how each host would be rebuilt",
    prove="return a host to use only after its proofs of this level, quick or full, have passed",
    since="with --report: maximum age (7d, 12w; default: all)",
)
def rebuild(request: Request, from_: str = "", report: bool = False) -> int:
    """Repair hosts in any state, if necessary by reinstallation, then verify them.

    By its diagnosis, a host is repaired, reprovisioned, power-cycled or reinstalled.

    hostwright rebuild gpu01 --check
    """
    import time

    from hostwright.apply.rollout.limits import read_limits
    from hostwright.cli.asking import who_is_asked
    from hostwright.cli.exits import shown
    from hostwright.cli.opening import ask_password, open_fleet, targets_of
    from hostwright.cli.timeline import check_timeline, drawn
    from hostwright.cli.views.progress import run_view
    from hostwright.cli.views.rebuilding.rebuilds import announce, show_decisions, show_rebuilt, status_of

    if report:
        return _show_times(request)
    check_timeline(request)
    start = _start(from_)
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    read_limits(request, len(targets))  # mistakes are reported before the operator types a password
    password = ask_password(request)
    if request.check:
        decisions = shown(
            lambda: fleet.decide(targets, start, request, password=password),
            lambda decisions: show_decisions(targets, decisions, start=start, as_json=request.json),
        )
        return status_of(decisions)
    with drawn(request.timeline, run_view(request)) as view:
        began_s = time.monotonic()
        rebuilt = shown(
            lambda: fleet.rebuild(
                targets,
                start,
                request,
                ask=who_is_asked(request),
                password=password,
                view=view,
                decided=(lambda _: None) if request.json else announce,
            ),
            lambda rebuilt: show_rebuilt(targets, rebuilt, took_s=time.monotonic() - began_s, as_json=request.json),
        )
    return rebuilt.status


def _start(text: str) -> Start | None:
    from typing import cast

    from hostwright.common.errors import InputError
    from hostwright.rebuild.rebuild import STARTS

    if text and text not in STARTS:
        raise InputError(f"found {text!r:.40}, expected one of {', '.join(STARTS)}", "--from")
    return cast("Start", text) or None


def _show_times(request: Request) -> int:
    from datetime import UTC, datetime

    from hostwright.cli.console import make_console
    from hostwright.cli.opening import open_fleet, refuse_strangers, targets_of
    from hostwright.cli.views.rebuilding.times import times_table
    from hostwright.cli.views.shared import print_document
    from hostwright.plan.host.locks import read_duration
    from hostwright.rebuild import report

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
        make_console().print(times_table(rebuilds))
    return 0


@verb(
    *CHANGING,
    "check",
    "yes",
    to="a stack name, or the first characters of a release's date or digest (default: the latest release)",
)
def rollback(request: Request, to: str = "") -> int:
    """Return hosts to the latest stack release that passed verification on them.

    hostwright rollback gpu01
    """
    from dataclasses import replace
    from functools import partial

    from hostwright.cli.changing import change
    from hostwright.cli.opening import open_fleet, targets_of
    from hostwright.cli.shell.advice import CALL, current
    from hostwright.cli.views.changing.outcomes import intents, show_no_way_back
    from hostwright.cli.views.shared import warn

    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    ways = fleet.ways_back(targets, to)
    if ways.errors or ways.untouched:  # no host is rolled back unless all hosts can be rolled back
        return show_no_way_back(ways, targets, to, as_json=request.json)
    for sentence in intents(ways.values):
        warn(sentence)
    targets = replace(targets, chosen=tuple(way.back for way in ways.values))
    stacks = {way.back.stack.name for way in ways.values}
    # messages of this change may recommend `mirror`, which needs the stack's name
    CALL.set(replace(current(), stack=stacks.pop() if len(stacks) == 1 else ""))
    request = replace(request, own={"to": to})
    return change("rollback", fleet, targets, request, partial(fleet.rollback, targets, request))


@verb(
    *NAMED,
    fingerprint="the fingerprint of the new key, as shown on the host's console: SHA256:…",
    forget="only remove the old key; the host is then unknown",
)
def trust(request: Request, fingerprint: str = "", forget: bool = False) -> int:
    """Accept the new SSH key of a reinstalled host, after confirmation.

    The host's console, a fingerprint or your answer confirms the key.

    hostwright trust gpu01
    """
    import sys

    from hostwright.cli.asking import answer_to
    from hostwright.cli.exits import shown
    from hostwright.cli.opening import open_fleet, targets_of
    from hostwright.cli.views.reaching.keys import show_keys, tell
    from hostwright.common.errors import AS_DESIRED, FAILED, InputError
    from hostwright.rebuild.install.sources import read_fingerprint

    wanted = read_fingerprint(fingerprint.strip()) if fingerprint else ""
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    if wanted and forget:
        raise InputError("cannot be combined with --fingerprint; pass only one of them", "--forget")
    settled = (lambda _: None) if request.json else tell
    ask = answer_to if sys.stdin.isatty() and sys.stderr.isatty() else None
    results = shown(
        lambda: (
            fleet.forget(targets, tell=settled)
            if forget
            else fleet.trust(targets, fingerprint=wanted, ask=ask, tell=settled)
        ),
        lambda results: show_keys(results, as_json=request.json),
    )
    return FAILED if results.errors else AS_DESIRED


@verb(
    *REACHED,
    "notify",
    "yes",
    order="on, off, cycle or status",
    boot="boot device, for the next boot only: network, media (with --image), or disk to cancel either",
    image="URL of the image for --boot media, reachable from the BMC",
    force="proceed even if the host is locked or its GPUs are in use; power off without a clean shutdown",
)
def power(request: Request, order: str, boot: str = "", image: str = "") -> int:
    """Switch hosts on or off, power-cycle them or show their state, through BMCs.

    hostwright power status gpu01 gpu02
    """
    from hostwright.cli.asking import agree, refuse_unasked
    from hostwright.cli.exits import shown
    from hostwright.cli.opening import ask_password, open_fleet, targets_of
    from hostwright.cli.views.power import show_powered
    from hostwright.cli.views.progress import run_view
    from hostwright.inventory.patterns import counted
    from hostwright.rebuild.orders import DISTURBING, Boot, Order, read_bmcs

    wanted = Order(order, Boot(boot, image), request.force)
    wanted.check()
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = None
    if order in DISTURBING:
        what = f"`power {order}` ends all work on the hosts"
        refuse_unasked(what, yes=request.yes, as_json=request.json)
        read_bmcs(targets)  # mistakes are reported before the operator types a password
        password = ask_password(request)
        done = "powers off" if order == "off" else "power-cycles"
        consequences = [f"{done} {counted(target.name for target in targets)}"]
        agree(what, consequences, len(targets), yes=request.yes, as_json=request.json)
    ended = shown(
        lambda: fleet.power(targets, wanted, password=password, view=run_view(request)),
        lambda ended: show_powered(ended.results, as_json=request.json),
    )
    return ended.status
