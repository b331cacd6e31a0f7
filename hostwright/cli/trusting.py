"""``invoke trust``: the key of a host that was installed anew, written down once somebody says that it is right."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rich.text import Text

from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, FAILED, Call
from hostwright.cli.showing import errors_json, show_errors
from hostwright.common.errors import HostError, InputError, Mistakes
from hostwright.fleet import Member
from hostwright.rebuild.install.sources import Confirmed, Sources, confirm, read_console_command, read_fingerprint
from hostwright.transport.identity.hostkeys import Entry
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.trusting import Replaced, known, refuse_revoked, replace


@dataclass(frozen=True, slots=True)
class Looked:
    """What a host shows and what is written down for it; ``confirmed`` once somebody said that it is right."""

    host: str
    offered: HostKey
    before: tuple[Entry, ...]
    confirmed: Confirmed | None = None

    @property
    def as_known(self) -> bool:
        """Whether the key that it shows is written down."""
        return any(entry.blob == self.offered.blob for entry in self.before)


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one host: ``trusted``, ``known`` (as before) or ``forgotten``."""

    result: str
    replaced: Replaced
    source: str = ""

    def to_json(self) -> dict[str, Any]:
        """The host as JSON values."""
        before = [{**_key(one.key_type, one.fingerprint), "where": one.where} for one in self.replaced.before]
        return {
            "host": self.replaced.host,
            "result": self.result,
            "before": before,
            "now": [_key(key.key_type, key.fingerprint) for key in self.replaced.now],
            "source": self.source,
            "files": [str(path) for path in self.replaced.files],
        }


@dataclass
class _Shown:
    """What there is to tell at the end; without ``--json`` each host is told at once."""

    as_json: bool
    told: list[Told] = field(default_factory=list)
    errors: list[HostError] = field(default_factory=list)

    def do(self, work: Callable[[], Told]) -> None:
        """Do the work of one host, and keep what came of it."""
        try:
            told = work()
        except HostError as error:
            self.errors.append(error)
            return
        self.told.append(told)
        if not self.as_json:
            console.make_console().print(Text(console.printable(_line(told))))

    def end(self) -> int:
        """Tell the rest; return the exit status."""
        if self.as_json:
            hosts = [told.to_json() for told in self.told]
            print(json.dumps({"hosts": hosts, "errors": errors_json(tuple(self.errors))}))
        else:
            show_errors(tuple(self.errors))
        return FAILED if self.errors else AS_DESIRED


def trust(call: Call) -> int:
    """``invoke trust``: the old keys of hosts out, the new ones in; or only the old ones out (``--forget``)."""
    fingerprint = read_fingerprint(call["fingerprint"].strip()) if call["fingerprint"] else ""
    members = {member.name: member for member in call.members(call.fleet())}
    if fingerprint and call["forget"]:
        raise InputError("forgetting a key needs no fingerprint: give one of --fingerprint and --forget", "--forget")
    if fingerprint and len(members) != 1:
        raise InputError(f"is of one host, and --hosts names {len(members)}: trust them one by one", "--fingerprint")
    commands = _commands(members)
    shown = _Shown(bool(call["json"]))
    if call["forget"]:
        for member in members.values():
            shown.do(partial(_forget, member))
        return shown.end()

    def look(name: str) -> Looked:
        return _look(members[name], Sources(fingerprint, commands[name]))

    looked: Results[Looked] = on_each(tuple(members), look, stop=lambda: None)
    shown.errors += looked.errors
    for one in looked.values:  # one after the other: a person answers one question at a time
        shown.do(partial(_settle, members[one.host], one))
    return shown.end()


def _commands(members: Mapping[str, Member]) -> dict[str, str]:
    """Each host's console command. Raises ``InputErrors`` with every mistake, before any host is asked."""
    mistakes, found = Mistakes(), dict[str, str]()
    for name, member in members.items():
        with mistakes:
            found[name] = read_console_command(member.host)
    mistakes.refuse()
    return found


def _look(member: Member, sources: Sources) -> Looked:
    """Ask a host for its key, and those sources that answer without a person."""
    from hostwright.transport.identity.offered import offered

    before = known(member.host, member.options)
    looked = Looked(member.name, offered(member.host, member.options), before)
    refuse_revoked(member.host, member.options, [looked.offered])
    unasked = looked.as_known or not sources.console
    if unasked and not sources.fingerprint:
        return looked
    return Looked(member.name, looked.offered, before, confirm(member.host, looked.offered, before, sources))


def _forget(member: Member) -> Told:
    return Told("forgotten", replace(member.host, member.options, ()))


def _settle(member: Member, looked: Looked) -> Told:
    """Ask the operator where nobody else has answered, and write the key down."""
    if looked.as_known:
        return Told("known", Replaced(member.name, looked.before, (looked.offered,), ()))
    ask = _ask if sys.stdin.isatty() and sys.stderr.isatty() else None
    confirmed = looked.confirmed or confirm(member.host, looked.offered, looked.before, Sources(ask=ask))
    return Told("trusted", replace(member.host, member.options, confirmed.keys), confirmed.source)


def _ask(question: str) -> str:
    print(console.printable(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline(80)


def _line(told: Told) -> str:
    """One host in one line."""
    replaced = told.replaced
    old = ", ".join(dict.fromkeys(f"{one.key_type} {one.fingerprint}" for one in replaced.before)) or "no key"
    if told.result == "known":
        return f"{replaced.host}  as known: {', '.join(map(str, replaced.now))}; nothing was changed"
    if not replaced.files:
        return f"{replaced.host}  {old}; nothing was changed"
    new = ", ".join(map(str, replaced.now)) or "no key"
    by = f"  by {told.source}" if told.source else ""
    return f"{replaced.host}  {old} → {new}{by}  in {', '.join(map(str, replaced.files))}"


def _key(key_type: str, fingerprint: str) -> dict[str, str]:
    return {"key_type": key_type, "fingerprint": fingerprint}
