"""Layers taken away from many hosts: what each of them had, by its own records, and what stays all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hostwright.apply.rollout.connections import CUT, Connections
from hostwright.apply.rollout.rollout import on_each
from hostwright.common.errors import HostError, InputError, Refused, Stopped
from hostwright.common.text import printable
from hostwright.plan import release
from hostwright.plan.member import Member, Members, Roster
from hostwright.plan.observing import ask
from hostwright.plan.planning import Desired, removal_of
from hostwright.plan.role import Role
from hostwright.stack import stackstore

RECORDS = (release.RELEASE, release.FORMERS)  #: which stacks a host had; readable by anybody there


@dataclass(frozen=True)
class Former:
    """What one host was before, by its own records. ``notes`` are sentences for the operator."""

    name: str
    desired: tuple[Desired, ...] = ()
    known: bool = True  #: whether this machine kept all of its stacks
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Formers:
    """What the hosts were before, and what kept this machine from seeing it of some."""

    found: Mapping[str, Former]
    errors: Mapping[str, HostError]

    def of(self, name: str) -> Former:
        """What a host was before. Raises ``HostError`` where that is not known: it is not to be touched."""
        if name in self.found:
            return self.found[name]
        raise self.errors.get(name) or Stopped(name, CUT)


@dataclass(frozen=True)
class Removal:
    """The goal of a run that takes away the roles of its members. ``roles`` are all that there are."""

    roles: tuple[Role, ...]
    formers: Formers
    notes: tuple[str, ...] = ()  #: what the operator should know before anything is done

    def desired(self, member: Member) -> Desired:
        """The host without these roles, and without what earlier stacks brought with them."""
        return removal_of(member.desired, self.formers.of(member.name).desired)

    def departs(self, member: Member) -> bool:
        """Whether every role is taken away, and all stacks that the host had are known."""
        return whole(self.roles, member) and self.formers.of(member.name).known


def removal(roster: Roster, members: Members, connections: Connections) -> Removal:
    """The goal of a removal of the members' roles, from the records of all hosts."""
    formers = look_back(members, connections)
    going = members[0].roles if members else ()
    seen = tuple(note for former in formers.found.values() for note in former.notes)
    return Removal(roster.roles, formers, (*what_stays(roster.roles, going), *seen))


def whole(roles: Sequence[Role], member: Member) -> bool:
    """Whether every role that there is was named for this host."""
    return {role.name for role in roles} == {role.name for role in member.roles}


def look_back(members: Sequence[Member], connections: Connections) -> Formers:
    """What hosts were before."""
    by_name = {member.name: member for member in members}

    def look(name: str) -> Former:
        with connections.connect(by_name[name]) as shell:
            facts = ask(shell, RECORDS)
        if sentence := release.refusal(facts):
            raise Refused(name, sentence)
        records = [record for record in (release.read(facts), *release.formers(facts)) if record]
        return _former(by_name[name], records)

    results = on_each(tuple(by_name), look, stop=connections.close)
    return Formers({one.name: one for one in results.values}, {error.host: error for error in results.errors})


def _former(member: Member, records: Sequence[Mapping[str, object]]) -> Former:
    """What a host with these records was before."""
    digests = {release.digest_of(one): one for one in records if not release.about(one, member.stack)}
    try:
        stacks = {digest: stackstore.find(digest, member.kinds) for digest in digests}
    except InputError as error:
        raise Refused(member.name, str(error)) from error
    unknown = [digest for digest, stack in stacks.items() if stack is None]
    notes = tuple(
        f"{member.name} had the stack {printable(str(digests[digest].get('stack', '')))[:80]}, which this machine did "
        "not keep: what only that brought stays, and with it what Hostwright keeps there"
        for digest in unknown
    )
    desired = tuple(replace(member, stack=stack).desired for stack in stacks.values() if stack)
    return Former(member.name, desired, not unknown, notes)


def what_stays(roles: Sequence[Role], going: Sequence[Role]) -> Iterator[str]:
    """Roles that need what goes and were not named stay, and will not work: that is for the operator to know."""
    gone = {role.name for role in roles if role in going}
    for role in roles:
        needed = ", ".join(need for need in role.needs if need in gone)
        if needed and role.name not in gone:
            yield f"{role.name} needs {needed} and stays, since it is not among --roles: it will differ from its stack"
