"""Removes roles from many hosts. The records on each host show which former stacks to remove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hostwright.apply.rollout.connections import CUT, Connections
from hostwright.apply.rollout.rollout import on_each
from hostwright.common.errors import HostError, InputError, Refused, Stopped
from hostwright.common.text import printable
from hostwright.plan.desired import Desired
from hostwright.plan.host import release
from hostwright.plan.observing import ask
from hostwright.plan.planning import removal_of
from hostwright.plan.roles.role import Role, providers
from hostwright.plan.targets import Roster, TargetHost, Targets
from hostwright.stack import stackstore

RECORDS = (release.RELEASE, release.FORMERS)  #: probes for the records of a host's current and former stacks


@dataclass(frozen=True)
class Former:
    """The former stacks of one host and its roles to remove, from the host's records.

    ``notes`` are for the operator.
    """

    name: str
    desired: tuple[Desired, ...] = ()
    known: bool = True  #: whether this machine has a copy of each former stack
    notes: tuple[str, ...] = ()
    off: tuple[str, ...] = ()  #: roles to remove because they are in the host's record but no longer in the inventory


@dataclass(frozen=True)
class Formers:
    """The former stacks and roles of hosts, by host, and the errors of hosts whose records could not be read."""

    found: Mapping[str, Former]
    errors: Mapping[str, HostError]

    def of(self, name: str) -> Former:
        """Return the former stacks of the host ``name``. Raises ``HostError`` if the host's records could
        not be read.
        """
        if name in self.found:
            return self.found[name]
        raise self.errors.get(name) or Stopped(name, CUT)


@dataclass(frozen=True)
class Removal:
    """The goal of ``remove``: hosts without the roles of the targets, and without roles that have left the
    inventory.
    """

    roster: Roster
    formers: Formers
    notes: tuple[str, ...] = ()  #: messages that the operator receives before the run

    def desired(self, target: TargetHost) -> Desired:
        """Return the desired state of a host without the roles to remove and without leftovers of former stacks."""
        former = self.formers.of(target.name)
        also = self.roster.also(target, former.off)
        now = also.having(also.stack)
        return removal_of(now.desired, former.desired, now.rest.desired)

    def departs(self, target: TargetHost) -> bool:
        """Return whether every role of the host is removed, and this machine has copies of all former stacks of the
        host.
        """
        return whole(target) and self.formers.of(target.name).known


def removal(roster: Roster, targets: Targets, connections: Connections) -> Removal:
    """Return the goal to remove the roles of ``targets``. Reads the release records of all hosts."""
    formers = probe_formers(roster, targets, connections)
    going = [role for role in roster.roles if any(role in target.roles for target in targets)]
    seen = tuple(note for former in formers.found.values() for note in former.notes)
    present = [role for role in roster.roles if any(role in target.of_host for target in targets)]
    return Removal(roster, formers, (*what_stays(present, going), *seen))


def whole(target: TargetHost) -> bool:
    """Return whether ``target`` includes every role of its host."""
    return {role.name for role in target.of_host} == {role.name for role in target.roles}


def probe_formers(roster: Roster, targets: Targets, connections: Connections) -> Formers:
    """Read the records of former stacks from the hosts of ``targets``, each over one exec channel without root."""
    by_name = {target.name: target for target in targets}

    def of_host(name: str) -> Former:
        with connections.connect(by_name[name]) as shell:
            facts = ask(shell, RECORDS)
        if sentence := release.refusal(facts):
            raise Refused(name, sentence)
        records = [record for record in (release.read(facts), *release.formers(facts)) if record]
        target = by_name[name]
        named = targets.roles or [role.name for role in roster.roles]
        here = {role.name for role in target.of_host}
        recorded = {role for record in records for role in record.get("roles", {})}
        off = tuple(role for role in named if role in recorded and role not in here)
        return replace(_former(roster.also(target, off), records), off=off)

    results = on_each(tuple(by_name), of_host, stop=connections.close)
    return Formers({former.name: former for former in results.values}, {error.host: error for error in results.errors})


def _former(target: TargetHost, records: Sequence[Mapping[str, Any]]) -> Former:
    digests = {release.digest_of(record): record for record in records if not release.about(record, target.stack)}
    try:
        stacks = {digest: stackstore.find(digest, target.kinds) for digest in digests}
    except InputError as error:
        raise Refused(target.name, str(error)) from error
    unknown = [digest for digest, stack in stacks.items() if stack is None]
    notes = tuple(
        f"{target.name} had the stack {printable(str(digests[digest].get('stack', '')))[:80]}, of which this machine "
        "has no copy; software that only this stack installs stays on the host, and so do Hostwright's own files"
        for digest in unknown
    )
    desired = tuple(
        target.having(stack, record["roles"]).desired
        for stack, record in zip(stacks.values(), digests.values(), strict=True)
        if stack
    )
    return Former(target.name, desired, not unknown, notes)


def what_stays(roles: Sequence[Role], going: Sequence[Role]) -> Iterator[str]:
    """Yield a warning for each role in ``roles`` that stays although it needs one of the removed roles, ``going``."""
    for role in roles:
        needed = ", ".join(one.name for need in role.needs for one in providers(need, roles) if one in going)
        if needed and role not in going:
            yield f"{role.name} stays, but will differ from its stack, because it needs {needed}; add it to --roles"
