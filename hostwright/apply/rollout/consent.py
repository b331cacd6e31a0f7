"""What a run would disturb or take away, and the plans that its operator agreed to.

Nothing is locked while somebody is asked. A host is changed exactly as it was shown then: its plan must still be the
same once it is locked (``HostApply``).
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

YES_VARIABLE = "HOSTWRIGHT_YES"  #: of the environment, agrees as ``--yes`` does
NAMED = 5  #: our choice: whose work is named of a host


class Ask(Protocol):
    """Asks an operator, who sees what a run would do to so many hosts. Raises an error where the answer is not yes."""

    def __call__(self, consequences: Sequence[str], hosts: int) -> None:
        """Ask once; with no consequences, there is nothing to ask."""


def unasked(what: str) -> InputError:
    """The error where nobody agreed to ``what`` is done, and nobody can be asked."""
    sentence = f"{what}, and nobody can be asked here: no host was touched; --yes (or {YES_VARIABLE}=1) agrees"
    return InputError(sentence, "--yes")


def plan_each(targets: Targets, connections: Connections, goal: Goal = AS_WANTED) -> Results[HostPlan]:
    """Probe each host and plan; nothing is changed. Errors of hosts are in the results."""
    by_name = targets.by_name

    def of_host(name: str) -> HostPlan:
        return connections.plan(by_name[name], desired=goal.desired(by_name[name]))

    return on_each(tuple(by_name), of_host, stop=connections.close)


def consent(run: Run, goal: Goal, *, saved: Mapping[str, Plan], ask: Ask | None) -> Consent:
    """Plan the hosts of a run and ask once; agreed to is the ``saved`` plan of a host that has one. Without ``ask``,
    or with ``--yes``, nobody is asked and nothing is planned. Raises what ``ask`` raises."""
    targets, request = run.targets, run.request
    if ask is None or request.yes:
        return Consent({name: Agreed(plan) for name, plan in saved.items()})
    try:
        results = plan_each(targets, run.connections, goal)
    except Interrupted as stop:
        stop.ended = None  # of the run, nothing has come
        raise
    plans = results.values
    local = {target.name for target in targets if target.host.local}
    ask([*removed(plans if run.verb == "remove" else ()), *consequences(plans, request, local=local)], len(targets))
    return Consent(
        {each.host: Agreed(saved.get(each.host, each.plan), each.losses) for each in plans},
        {error.host: error for error in results.errors},
    )


def removed(plans: Iterable[HostPlan]) -> Iterator[str]:
    """Which roles are removed, and from which hosts."""
    gone = [each for each in plans if each.plan.roles and not each.plan.refusals]
    if gone:
        roles = dict.fromkeys(role.role for each in gone for role in each.plan.roles)
        yield f"removes {', '.join(roles)} from {counted(each.host for each in gone)}"


def consequences(plans: Iterable[HostPlan], request: Request, *, local: Collection[str] = ()) -> Iterator[str]:
    """What is rebooted, whose work is ended, and what is lost for good. A host whose work keeps it from being changed
    (neither ``--drain`` nor ``--force``) is refused later, and nothing happens to it; a ``local`` one is not rebooted.
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
            found.setdefault(f"ends work on {{}}: {users}", []).append(each.host)
        if each.losses:
            what = ", ".join(map(_plain, each.losses))
            found.setdefault(f"takes away from {{}}, for good: {what}", []).append(each.host)
    return folded(found)


def folded(found: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Each sentence with its hosts in the place of ``{}``."""
    return (sentence.replace("{}", counted(hosts), 1) for sentence, hosts in found.items())


def _plain(text: str) -> str:
    """A host's text in one line, in which no host's name is filled in."""
    return one_line(text).replace("{}", "{ }")
