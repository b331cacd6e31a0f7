"""``invoke remove``: layers taken away from hosts, and everything else left as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from hostwright.apply.rollout.rollout import on_each
from hostwright.cli import console
from hostwright.cli.call import CUT, Call, Connections
from hostwright.cli.converging import converge
from hostwright.cli.planning import show_plans
from hostwright.common.errors import HostError, InputError, Refused, Stopped
from hostwright.fleet import Fleet, Member
from hostwright.plan import release
from hostwright.plan.observing import ask
from hostwright.plan.planning import Desired, removal_of
from hostwright.stack import stackstore

RECORDS = (release.RELEASE, release.FORMERS)  #: which stacks a host had; readable by anybody there


@dataclass(frozen=True)
class Former:
    """What one host was before, by its own records."""

    name: str
    desired: tuple[Desired, ...] = ()
    known: bool = True  #: whether this machine kept all of its stacks


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


def remove(call: Call) -> int:
    """``invoke remove``."""
    fleet = call.fleet()
    members = call.members(fleet)
    for sentence in _what_stays(fleet, members[0].roles if members else ()):
        _note(sentence)
    formers = look_back(members)

    def gone(member: Member) -> Desired:
        return removal_of(member.desired, formers.of(member.name).desired)

    def departs(member: Member) -> bool:
        return whole(fleet, member) and formers.of(member.name).known

    if call["check"]:
        return show_plans(call, members, desired=gone)
    return converge(call, "remove", fleet, members, desired=gone, departs=departs)


def whole(fleet: Fleet, member: Member) -> bool:
    """Whether every role that there is was named for this host."""
    return {role.name for role in fleet.roles} == {role.name for role in member.roles}


def look_back(members: Sequence[Member]) -> Formers:
    """What hosts were before."""
    connections = Connections(None)
    by_name = {member.name: member for member in members}

    def look(name: str) -> Former:
        member = by_name[name]
        with connections.connect(member) as shell:
            facts = ask(shell, RECORDS)
        if sentence := release.refusal(facts):
            raise Refused(name, sentence)
        records = [record for record in (release.read(facts), *release.formers(facts)) if record]
        digests = {release.digest_of(one): one for one in records if not release.about(one, member.stack)}
        try:
            stacks = {digest: stackstore.find(digest, member.kinds) for digest in digests}
        except InputError as error:
            raise Refused(name, str(error)) from error
        unknown = [digest for digest, stack in stacks.items() if stack is None]
        for digest in unknown:
            was = console.printable(str(digests[digest].get("stack", "")))[:80]
            _note(
                f"{name} had the stack {was}, which this machine did not keep: what only that brought stays, "
                "and with it what Hostwright keeps there"
            )
        desired = tuple(replace(member, stack=stack).desired for stack in stacks.values() if stack)
        return Former(name, desired, not unknown)

    results = on_each(tuple(by_name), look, stop=connections.close)
    return Formers({one.name: one for one in results.values}, {error.host: error for error in results.errors})


def _what_stays(fleet: Fleet, roles: Sequence[object]) -> Iterator[str]:
    """Roles that need what goes and were not named stay, and will not work: that is for the operator to know."""
    going = {role.name for role in fleet.roles if role in roles}
    for role in fleet.roles:
        needed = ", ".join(need for need in role.needs if need in going)
        if needed and role.name not in going:
            yield f"{role.name} needs {needed} and stays, since it is not among --roles: it will differ from its stack"


def _note(sentence: str) -> None:
    console.make_console(stderr=True).print(Text(sentence, style="yellow"))
