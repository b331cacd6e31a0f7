"""``invoke plan``, ``provision``, ``remove``, ``rollback``: what differs, and hosts brought to what is desired."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.options import ChangeOptions, RunOptions
from hostwright.cli import console
from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.asking import Declined, ask, can_ask, of_plans, refuse_unasked, says_yes
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password, level_of, members_of, open_fleet
from hostwright.cli.views.changing.outcomes import intents, show_outcomes, show_plans
from hostwright.cli.views.shared import errors_json, print_document, show_errors, show_next, warn
from hostwright.common.errors import AS_DESIRED, DIFFERS, FAILED, INTERRUPTED, Unanswered, worst
from hostwright.common.quoting import sh
from hostwright.common.secret import Secret
from hostwright.common.text import count, printable
from hostwright.common.userpaths import expanded, place_for
from hostwright.fleet import Fleet, Members
from hostwright.inventory.patterns import counted
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


def plan(
    selection: Selection,
    connection: ConnectionOptions,
    *,
    force: bool = False,
    out: str = "",
    summary: bool = False,
    then: str = "provision",
    more: str = "",
    as_json: bool = False,
) -> int:
    """``invoke plan``; ``out`` names a file for the plans, ``summary`` leaves out what is within a layer. What is
    planned is done by the verb ``then`` with ``more`` options."""
    fleet = open_fleet(selection, connection, force=force)
    members = members_of(fleet, selection)
    return _plan(fleet, members, connection, out=out, brief=summary, then=then, more=more, as_json=as_json)


def _plan(
    fleet: Fleet,
    members: Members,
    connection: ConnectionOptions,
    *,
    goal: Goal = AS_WANTED,
    out: str = "",
    brief: bool = False,
    then: str = "",
    more: str = "",
    as_json: bool,
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
        signed = _signing(fleet, members)
        signing.check_can_sign(signed, file)
    password = ask_password(connection)
    saved = ""

    def look() -> Results[HostPlan]:
        nonlocal saved
        looked_at = fleet.plan(members, goal=goal, password=password)
        if out:
            redactor = Redactor(secrets_in(fleet.inventory.hosts.values(), members))
            savedplans.save(file, [each.plan for each in looked_at.values], redactor, signed)
            saved = out
        return looked_at

    results = shown(
        look,
        lambda results: show_plans(
            members, results, brief=brief, then=then, more=more, saved=saved, store=fleet.store, as_json=as_json
        ),
    )
    if results.errors:
        return FAILED
    return AS_DESIRED if all(looked_at.plan.empty for looked_at in results.values) else DIFFERS


def provision(
    selection: Selection,
    connection: ConnectionOptions,
    change: ChangeOptions,
    *,
    force: bool = False,
    check: bool = False,
    saved: str = "",
    resume: str | bool = "",
    prove: str = "",
    timeline: str = "",
    as_json: bool = False,
) -> int:
    """``invoke provision``; ``saved`` names a file of ``plan --out``, ``resume`` a run, or ``True`` for the
    last that left hosts, ``prove`` the level of proofs, ``timeline`` the file of the run's page."""
    from hostwright.cli.verbs.runs import check_timeline, drawn  # not for those who only plan

    check_timeline(timeline, check=check)
    level = level_of(prove)
    if check:
        return plan(selection, connection, force=force, as_json=as_json)
    fleet = open_fleet(selection, connection, force=force)
    if resume:
        given = replace(_run_options(selection, connection, change, force=force), prove=prove)
        last, options = fleet.resume(given, "" if resume is True else str(resume))
        _say(f"resuming {last}: {options.hosts.replace(',', ', ')}")
        selection = replace(selection, hosts=options.hosts, var=options.var, roles=options.roles)
        connection, change = replace(connection, accept_new=options.accept_new), options.change
        level = level_of(options.prove)
        fleet = open_fleet(selection, connection, force=options.force)
    members = members_of(fleet, selection)
    plans = _saved_plans(fleet, members, saved) if saved else {}
    password = _password(connection, change, members)
    change = _agreed(fleet, members, change, password, saved=plans, as_json=as_json)
    with drawn(timeline, _audience(as_json=as_json)) as audience:

        def run(chosen: Members, agreed: ChangeOptions) -> RunResults[Outcome]:
            return fleet.provision(
                chosen, change=agreed, saved=plans, prove=level, password=password, audience=audience
            )

        return _run("provision", run, members, change, proved=level is not None, as_json=as_json)


def remove(
    selection: Selection,
    connection: ConnectionOptions,
    change: ChangeOptions,
    *,
    force: bool = False,
    check: bool = False,
    as_json: bool = False,
) -> int:
    """``invoke remove``."""
    fleet = open_fleet(selection, connection, force=force)
    members = members_of(fleet, selection)
    if not check:
        refuse_unasked("`remove` takes layers off hosts", yes=change.yes, as_json=as_json)
    removal = fleet.removal(members)
    for sentence in removal.notes:
        warn(sentence)
    if check:
        return _plan(fleet, members, connection, goal=removal, then="remove", as_json=as_json)
    password, audience = _password(connection, change, members), _audience(as_json=as_json)
    change = _agreed(fleet, members, change, password, goal=removal, removes=True, as_json=as_json)

    def run(chosen: Members, agreed: ChangeOptions) -> RunResults[Outcome]:
        return fleet.remove(chosen, removal, change=agreed, password=password, audience=audience)

    return _run("remove", run, members, change, as_json=as_json)


def rollback(
    selection: Selection,
    connection: ConnectionOptions,
    change: ChangeOptions,
    *,
    force: bool = False,
    check: bool = False,
    to: str = "",
    as_json: bool = False,
) -> int:
    """``invoke rollback``; ``to`` is a stack, or how a release's date or digest begins."""
    fleet = open_fleet(selection, connection, force=force)
    members = members_of(fleet, selection)
    ways = fleet.ways_back(members, to)
    if ways.errors or ways.untouched:
        return _refuse(ways, members, to, as_json=as_json)
    for sentence in intents(ways.values):
        warn(sentence)
    members = replace(members, chosen=tuple(way.back for way in ways.values))
    if check:
        return _plan(fleet, members, connection, then="rollback", as_json=as_json)
    password, audience = _password(connection, change, members), _audience(as_json=as_json)
    change = _agreed(fleet, members, change, password, as_json=as_json)

    def run(chosen: Members, agreed: ChangeOptions) -> RunResults[Outcome]:
        return fleet.rollback(chosen, to=to, change=agreed, password=password, audience=audience)

    return _run("rollback", run, members, change, as_json=as_json)


def reach(
    verb: str,
    goal: Goal,
    fleet: Fleet,
    members: Members,
    *,
    connection: ConnectionOptions,
    change: ChangeOptions,
    files: Mapping[str, Path],
    options: Mapping[str, object],
    check: bool = False,
    again: str = "",
    as_json: bool = False,
) -> int:
    """A role's own verb that brings hosts to a goal; see ``Fleet.reach``. ``again`` are its options, as they are typed
    after a ``check``."""
    if check:
        return _plan(fleet, members, connection, goal=goal, then=verb, more=again, as_json=as_json)
    password, audience = _password(connection, change, members), _audience(as_json=as_json)

    def run(chosen: Members, agreed: ChangeOptions) -> RunResults[Outcome]:
        return fleet.reach(
            verb, chosen, goal, files=files, options=options, change=agreed, password=password, audience=audience
        )

    return _run(verb, run, members, change, as_json=as_json)


def _agreed(
    fleet: Fleet,
    members: Members,
    change: ChangeOptions,
    password: Secret | None,
    *,
    goal: Goal = AS_WANTED,
    saved: Mapping[str, Plan] | None = None,
    removes: bool = False,
    as_json: bool,
) -> ChangeOptions:
    """Look at the hosts, and ask once where a run would reboot them, disturb their work or remove what they have; the
    options to go on with. Nothing is asked of who agreed before, nor where nobody can be asked. Raises ``Declined``."""
    if change.yes or not can_ask(as_json=as_json):
        return change
    if saved:
        plans = [HostPlan(plan) for plan in saved.values()]
    else:
        _say(f"planning for {count(len(members), 'host')}, to ask before anything is disturbed")
        try:
            plans = list(fleet.plan(members, goal=goal, password=password).values)
        except KeyboardInterrupt as error:
            raise Declined("stopped: nothing was changed", INTERRUPTED) from error
    local = {member.name for member in members if member.host.local}
    consequences = list(of_plans(plans, change, force=fleet.force, local=local))
    gone = [each for each in plans if removes and each.plan.roles and not each.plan.refusals]
    if gone:
        roles = dict.fromkeys(role.role for each in gone for role in each.plan.roles)
        consequences.insert(0, f"removes {', '.join(roles)} from {counted(each.host for each in gone)}")
    ask(consequences, len(members))
    return replace(change, yes=any(each.losses for each in plans))  # what was shown was agreed to, and no more


def _run(
    verb: str,
    run: Callable[[Members, ChangeOptions], RunResults[Outcome]],
    members: Members,
    change: ChangeOptions,
    *,
    proved: bool = False,
    as_json: bool,
) -> int:
    """Change hosts and show what came of them, and with ``proved`` of their proofs. Where something would be lost for
    good, ask at a terminal, and go on with those hosts, and those that were not started; the exit status."""
    began = time.monotonic()
    ended = shown(
        lambda: run(members, change),
        lambda ended: show_outcomes(
            verb, members, ended, proved=proved, took_s=time.monotonic() - began, as_json=as_json
        ),
    )
    asked = {error.host for error in ended.results.errors if isinstance(error, Unanswered)}
    if not asked or not can_ask(as_json=as_json):
        return ended.status
    names = asked.union(ended.results.untouched)
    if not says_yes(f"Shall {', '.join(sorted(asked))} lose that?"):
        return ended.status
    again = replace(members, chosen=tuple(member for member in members if member.name in names))
    began = time.monotonic()
    more = shown(
        lambda: run(again, replace(change, yes=True)),
        lambda more: show_outcomes(verb, again, more, proved=proved, took_s=time.monotonic() - began, as_json=as_json),
    )
    return worst([more.status, *(error.exit_status for error in ended.results.errors if error.host not in asked)])


def _refuse(ways: Results[WayBack], members: Members, to: str, *, as_json: bool) -> int:
    """One host that cannot go back keeps all of them where they are."""
    if as_json:
        left = {"untouched": list(ways.names), "stopped_because": ALL_OR_NONE}
        print_document("provision", {"run": None, "hosts": [], "errors": errors_json(ways.errors), **left})
    show_errors(ways.errors)
    warn(ALL_OR_NONE)
    if (able := [way.now.name for way in ways.values]) and not as_json:
        show_next(console.make_console(), "rollback", able, members, sh(" --to %s", to) if to else "")
    return FAILED


def _saved_plans(fleet: Fleet, members: Members, file: str) -> Mapping[str, Plan]:
    """The plans of a file of ``plan --out``, by host, signed where the site asks for that."""
    from hostwright.apply.saved import savedplans

    return savedplans.load_for(members.by_name, expanded(file), _signing(fleet, members).signers)


def _signing(fleet: Fleet, members: Members) -> Signing:
    """Whether plans for these hosts are signed, and by whom."""
    from hostwright.apply.saved.signing import signing_of

    return signing_of((member.host for member in members), fleet.site.root)


def _audience(*, as_json: bool) -> Audience:
    """Who hears what a run does."""
    from hostwright.cli.views.progress import run_audience

    return run_audience(as_json=as_json)


def _password(connection: ConnectionOptions, change: ChangeOptions, members: Members) -> Secret | None:
    """The sudo password, prompted for once the options are known to be valid. Raises ``InputError``."""
    change.rollout.limits(len(members))
    return ask_password(connection)


def _run_options(
    selection: Selection, connection: ConnectionOptions, change: ChangeOptions, *, force: bool
) -> RunOptions:
    """The options of the command line, in the form in which a run's options are recorded."""
    rollout = change.rollout
    return RunOptions(
        hosts=selection.hosts,
        var=selection.var,
        roles=selection.roles,
        accept_new=connection.accept_new,
        force=force,
        drain=change.drain,
        no_reboot=change.no_reboot,
        yes=change.yes,
        canary=rollout.canary,
        batch=rollout.batch,
        max_fail=rollout.max_fail,
        executor=change.spread.executor,
        scheduler=change.spread.scheduler,
    )


def _say(sentence: str) -> None:
    console.make_console(stderr=True).print(Text(printable(sentence)))
