"""Roles removed from many hosts: what each host had, by its own records, and what stays."""

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
from hostwright.plan.member import Member, Members, Roster
from hostwright.plan.observing import ask
from hostwright.plan.planning import removal_of
from hostwright.plan.roles.role import Role
from hostwright.stack import stackstore

RECORDS = (release.RELEASE, release.FORMERS)  #: which stacks a host had; readable by anybody there


@dataclass(frozen=True)
class Former:
    """The stacks and roles that one host had, by its own records. ``notes`` are sentences for the operator."""

    name: str
    desired: tuple[Desired, ...] = ()
    known: bool = True  #: whether this machine kept all of its stacks
    notes: tuple[str, ...] = ()
    off: tuple[str, ...] = ()  #: roles to be taken away that its record names and its list no longer does


@dataclass(frozen=True)
class Formers:
    """The stacks and roles that hosts had, and the errors of hosts whose records could not be read."""

    found: Mapping[str, Former]
    errors: Mapping[str, HostError]

    def of(self, name: str) -> Former:
        """What a host had. Raises ``HostError`` if its records could not be read: then it must not be touched."""
        if name in self.found:
            return self.found[name]
        raise self.errors.get(name) or Stopped(name, CUT)


@dataclass(frozen=True)
class Removal:
    """The goal of a run that removes the members' roles, and those roles that are on the host but no longer wanted."""

    roster: Roster
    formers: Formers
    notes: tuple[str, ...] = ()  #: what the operator should know before anything is done

    def desired(self, member: Member) -> Desired:
        """The desired states of the host without these roles, and without what former stacks brought with them."""
        former = self.formers.of(member.name)
        return removal_of(self.roster.also(member, former.off).desired, former.desired)

    def departs(self, member: Member) -> bool:
        """Whether every role is removed, and this machine knows all stacks that the host had."""
        return whole(member) and self.formers.of(member.name).known


def removal(roster: Roster, members: Members, connections: Connections) -> Removal:
    """The goal of a removal of the members' roles, from the records of all hosts."""
    formers = probe_formers(roster, members, connections)
    going = [role for role in roster.roles if any(role in member.roles for member in members)]
    seen = tuple(note for former in formers.found.values() for note in former.notes)
    present = [role for role in roster.roles if any(role in member.of_host for member in members)]
    return Removal(roster, formers, (*what_stays(present, going), *seen))


def whole(member: Member) -> bool:
    """Whether every role of this host was named."""
    return {role.name for role in member.of_host} == {role.name for role in member.roles}


def probe_formers(roster: Roster, members: Members, connections: Connections) -> Formers:
    """What hosts were before, from their records: one exec channel a host, without root."""
    by_name = {member.name: member for member in members}

    def of_host(name: str) -> Former:
        with connections.connect(by_name[name]) as shell:
            facts = ask(shell, RECORDS)
        if sentence := release.refusal(facts):
            raise Refused(name, sentence)
        records = [record for record in (release.read(facts), *release.formers(facts)) if record]
        member = by_name[name]
        named = members.roles or [role.name for role in roster.roles]
        here = {role.name for role in member.of_host}
        recorded = {role for record in records for role in record.get("roles", {})}
        off = tuple(role for role in named if role in recorded and role not in here)
        return replace(_former(roster.also(member, off), records), off=off)

    results = on_each(tuple(by_name), of_host, stop=connections.close)
    return Formers({former.name: former for former in results.values}, {error.host: error for error in results.errors})


def _former(member: Member, records: Sequence[Mapping[str, Any]]) -> Former:
    """What a host with these records was before."""
    digests = {release.digest_of(record): record for record in records if not release.about(record, member.stack)}
    try:
        stacks = {digest: stackstore.find(digest, member.kinds) for digest in digests}
    except InputError as error:
        raise Refused(member.name, str(error)) from error
    unknown = [digest for digest, stack in stacks.items() if stack is None]
    notes = tuple(
        f"{member.name} had the stack {printable(str(digests[digest].get('stack', '')))[:80]}, which this machine did "
        "not keep: what only that stack installed stays, and so does what Hostwright keeps there"
        for digest in unknown
    )
    desired = tuple(member.having(stack).desired for stack in stacks.values() if stack)
    return Former(member.name, desired, not unknown, notes)


def what_stays(roles: Sequence[Role], going: Sequence[Role]) -> Iterator[str]:
    """Roles that need what goes and were not named stay, and will not work: that is for the operator to know."""
    gone = {role.name for role in roles if role in going}
    for role in roles:
        needed = ", ".join(need for need in role.needs if need in gone)
        if needed and role.name not in gone:
            yield f"{role.name} needs {needed} and stays, since it is not among --roles: it will differ from its stack"
