"""``invoke remove``: layers taken away from hosts, and everything else left as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from hostwright import console, release, stackstore
from hostwright.cli.call import Call, Connections
from hostwright.cli.converging import converge
from hostwright.cli.planning import show_plans
from hostwright.fleet import Fleet, Member
from hostwright.observing import ask
from hostwright.planning import Desired, removal_of
from hostwright.rollout import on_each

RECORDS = (release.RELEASE, release.FORMERS)  #: which stacks a host had; readable by anybody there


def remove(call: Call) -> int:
    """``invoke remove``."""
    fleet = call.fleet()
    members = call.members(fleet)
    for sentence in _what_stays(fleet, members[0].roles):
        _note(sentence)
    former = _former(members)

    def gone(member: Member) -> Desired:
        return removal_of(member.desired, former.get(member.name, ()))

    if call["check"]:
        return show_plans(call, members, desired=gone)
    return converge(call, "remove", fleet, members, desired=gone)


def _former(members: Sequence[Member]) -> dict[str, tuple[Desired, ...]]:
    """What hosts were before, by their own records. A host that does not answer is told of when it is to be changed."""
    connections = Connections(None)
    by_name = {member.name: member for member in members}

    def look(name: str) -> tuple[str, tuple[Desired, ...]]:
        member = by_name[name]
        with connections.connect(member) as session:
            facts = ask(session, name, RECORDS, None)
        records = [record for record in (release.read(facts), *release.formers(facts)) if record]
        digests = {release.digest_of(record): record for record in records}
        digests.pop(member.stack.digest(), None)
        found = {digest: stackstore.find(digest) for digest in digests if digest}
        for digest in (one for one, stack in found.items() if stack is None):
            was = console.printable(str(digests[digest].get("stack", "")))[:80]
            _note(f"{name} had the stack {was}, which this machine did not keep: what only that brought stays")
        return name, tuple(replace(member, stack=stack).desired for stack in found.values() if stack)

    return dict(on_each(tuple(by_name), look, stop=connections.close).values)


def _what_stays(fleet: Fleet, roles: Sequence[object]) -> Iterator[str]:
    """Roles that need what goes and were not named stay, and will not work: that is for the operator to know."""
    going = {role.name for role in fleet.roles if role in roles}
    for role in fleet.roles:
        needed = ", ".join(need for need in role.needs if need in going)
        if needed and role.name not in going:
            yield f"{role.name} needs {needed} and stays, since it is not among --roles: it will differ from its stack"


def _note(sentence: str) -> None:
    console.make_console(stderr=True).print(Text(sentence, style="yellow"))
