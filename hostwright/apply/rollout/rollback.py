"""Finds the release (stack and roles) to which each host can be rolled back, from the records on the hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.common.errors import InputError, Refused
from hostwright.common.text import printable
from hostwright.plan.host import release
from hostwright.plan.model import Facts
from hostwright.plan.observing import ask
from hostwright.plan.targets import TargetHost
from hostwright.stack import stackstore
from hostwright.stack.rules import check_stack
from hostwright.stack.stack import Stack

RECORDS = (release.RELEASE, release.FORMERS)  #: probes for the records of a host's current and former releases


@dataclass(frozen=True)
class WayBack:
    """The release to which one host can be rolled back. ``now`` is the host before the rollback, ``back`` the host
    after the rollback.
    """

    now: TargetHost  #: the host with the stack from the inventory
    back: TargetHost  #: the same host and variables with the stack and the layers of the release record
    at: str  #: time (UTC, ISO 8601) at which the host was verified with the earlier stack


def ways_back(targets: Sequence[TargetHost], connections: Connections, to: str = "") -> Results[WayBack]:
    """Find the release to which each of ``targets`` can be rolled back, from the records on the hosts.

    Each host is read over one exec channel without root. ``to`` is as in ``way_back``.
    """
    by_name = {target.name: target for target in targets}

    def of_host(name: str) -> WayBack:
        with connections.connect(by_name[name]) as shell:
            facts = ask(shell, RECORDS)
        return way_back(by_name[name], facts, to)

    return on_each(tuple(by_name), of_host, stop=connections.close)


def way_back(target: TargetHost, facts: Facts, to: str = "") -> WayBack:
    """Return the release to which a host with these facts can be rolled back.

    The default is the latest verified release that differs from the inventory: the current record after an unfinished
    upgrade, else the latest former record. ``to`` is a stack's name, or the beginning of a date or digest. Raises
    ``Refused`` with a list of the host's records if none of them matches.
    """
    if sentence := release.refusal(facts):
        raise Refused(target.name, sentence)
    records = [record for record in (release.read(facts), *release.formers(facts)) if record]
    if to:
        chosen = next((record for record in records if _named(record, to)), None)
    else:
        chosen = next((record for record in records if not release.about(record, target.stack)), None)
    if chosen is None:
        raise Refused(target.name, _no_record(target, records, to))
    stack, had = _stack_of(target, chosen), chosen["roles"]
    back = target.having(stack, [role for role in stack.roles if role in had])
    return WayBack(target, back, release.at_of(chosen))


def _named(record: Mapping[str, Any], to: str) -> bool:
    return record.get("stack") == to or any(
        word.startswith(to) for word in (release.at_of(record), release.digest_of(record))
    )


def _stack_of(target: TargetHost, record: Mapping[str, Any]) -> Stack:
    """Return this machine's copy of the stack that ``record`` names. Raises ``Refused`` if no copy exists, or if the
    stack breaks a rule of this version.
    """
    try:
        stack = stackstore.find(release.digest_of(record), target.kinds)
    except InputError as error:
        raise Refused(target.name, str(error)) from error
    if stack is None:
        raise Refused(
            target.name,
            f"the host's release record of {_said(record)} names a stack that this machine does not have; roll back "
            "from the machine that provisioned that stack, or set `stack` in the inventory and provision",
        )
    refusals = check_stack(stack, target.having(stack, stack.roles).desired.rules)
    if refusals:
        raise Refused(target.name, f"the stack {stack.name} is refused: {'; '.join(map(str, refusals))}")
    return stack


def _no_record(target: TargetHost, records: Sequence[Mapping[str, Any]], to: str) -> str:
    if not records:
        return "it has no release record: it was never verified, and there is nothing to go back to"
    known = ", ".join(map(_said, records))
    if to:
        return f"it has no release record of {to!r}; its records: {known}"
    return f"it has no record of another release than {target.stack.name} of the inventory; its records: {known}"


def _said(record: Mapping[str, Any]) -> str:
    digest = release.digest_of(record)[:12] or "without a digest"
    return f"{printable(str(record.get('stack', '')))[:80]} ({release.at_of(record) or 'no date'}, {digest})"
