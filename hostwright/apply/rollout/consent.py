"""Lists the work and data that a run would disturb or delete, and records the plans that the operator approved.

While the operator is asked, no host is locked. Later, ``HostApply`` plans each host again under its lock, and changes
the host only if its plan is still the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.rollout import Interrupted, Results, on_each
from hostwright.apply.run import Agreed, Consent, Run
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.common.text import one_line
from hostwright.inventory.patterns import counted
from hostwright.plan.model import Plan
from hostwright.plan.planning import HostPlan
from hostwright.plan.targets import Targets

YES_VARIABLE = "HOSTWRIGHT_YES"  #: environment variable with the same effect as ``--yes``
NAMED = 5  #: maximum number of users that are listed for each host (our choice)


class Ask(Protocol):
    """Asks the operator to approve the consequences of a run. Raises an error for any answer other than yes."""

    def __call__(self, consequences: Sequence[str], hosts: int) -> None:
        """Ask the operator once to approve ``consequences``; if empty, ask nothing. ``hosts`` is the number of hosts in
        the run.
        """


def unasked(what: str) -> InputError:
    """Return the error for the action ``what`` if no terminal exists on which the operator can approve the action."""
    sentence = f"{what}; pass --yes or set {YES_VARIABLE}=1, since no terminal exists to ask on; nothing was changed"
    return InputError(sentence, "--yes")


def plan_each(targets: Targets, connections: Connections, goal: Goal = AS_WANTED) -> Results[HostPlan]:
    """Probe and plan each host of ``targets`` for a goal, without any changes. Errors of hosts are in the results."""
    by_name = targets.by_name

    def of_host(name: str) -> HostPlan:
        return connections.plan(by_name[name], desired=goal.desired(by_name[name]))

    return on_each(tuple(by_name), of_host, stop=connections.close)


def consent(run: Run, goal: Goal, *, saved: Mapping[str, Plan], ask: Ask | None) -> Consent:
    """Plan the hosts of a run and ask the operator once. Return the approved plans.

    A host with a ``saved`` plan is approved with that plan. Without ``ask``, or with ``--yes``, no question is asked
    and nothing is planned. Raises the exceptions of ``ask``.
    """
    targets, request = run.targets, run.request
    if ask is None or request.yes:
        return Consent({name: Agreed(plan) for name, plan in saved.items()})
    try:
        results = plan_each(targets, run.connections, goal)
    except Interrupted as stop:
        stop.ended = None  # The interrupted run has only made plans, which are not results.
        raise
    plans = results.values
    local = {target.name for target in targets if target.host.local}
    ask([*removed(plans if run.verb == "remove" else ()), *consequences(plans, request, local=local)], len(targets))
    return Consent(
        {each.host: Agreed(saved.get(each.host, each.plan), each.losses) for each in plans},
        {error.host: error for error in results.errors},
    )


def removed(plans: Iterable[HostPlan]) -> Iterator[str]:
    """Yield one sentence that lists the roles to remove and the number of affected hosts, if ``plans`` remove any."""
    gone = [each for each in plans if each.plan.roles and not each.plan.refusals]
    if gone:
        roles = dict.fromkeys(role.role for each in gone for role in each.plan.roles)
        yield f"removes {', '.join(roles)} from {counted(each.host for each in gone)}"


def consequences(plans: Iterable[HostPlan], request: Request, *, local: Collection[str] = ()) -> Iterator[str]:
    """Return sentences that describe all reboots, killed processes and permanent deletions of ``plans``.

    Without ``--drain`` or ``--force``, a busy host is left out, because its plan is refused later. A ``local`` host is
    never rebooted.
    """
    found: dict[str, list[str]] = {}
    for each in plans:
        if each.plan.refusals or (each.busy and not (request.drain or request.force)):
            continue
        if each.plan.reboot and not request.no_reboot and each.host not in local:
            found.setdefault(f"reboots {{}}: {_plain(each.plan.reboot)}", []).append(each.host)
        if each.busy and request.force and not request.drain:
            more = [f"{len(each.busy) - NAMED} more"] if len(each.busy) > NAMED else []
            users = ", ".join([*map(_plain, each.busy[:NAMED]), *more])
            found.setdefault(f"kills work on {{}}: {users}", []).append(each.host)
        if each.losses:
            what = ", ".join(map(_plain, each.losses))
            found.setdefault(f"removes permanently from {{}}: {what}", []).append(each.host)
    return folded(found)


def folded(found: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield each sentence in ``found`` with its hosts inserted at the first ``{}``."""
    return (sentence.replace("{}", counted(hosts), 1) for sentence, hosts in found.items())


def _plain(text: str) -> str:
    """Return the host's ``text`` as one line in which ``{}`` is escaped."""
    return one_line(text).replace("{}", "{ }")
