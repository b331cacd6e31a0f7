"""``invoke lock`` and ``invoke unlock``: hosts that nobody shall change for a while. Reading verbs do not mind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from hostwright import console, holding, locks
from hostwright.cli.call import AS_DESIRED, FAILED, Call, Connections
from hostwright.cli.showing import errors_json, show_errors
from hostwright.errors import InputError
from hostwright.locks import Holder, OperatorLock
from hostwright.model import Facts
from hostwright.operator import operator
from hostwright.rollout import Results, on_each
from hostwright.secret import Secret
from hostwright.transport import Session

REASON_SIGNS = 200  #: of ``--reason``: it stands in one line with the rest


@dataclass(frozen=True, slots=True)
class Found:
    """One host's locks: the operator's, as it is now and as it was before, and whose run works there."""

    host: str
    lock: OperatorLock | None
    before: OperatorLock | None
    run: Holder | None

    def to_json(self) -> dict[str, Any]:
        """The locks as JSON values."""
        return {
            "host": self.host,
            "lock": _json(self.lock),
            "before": _json(self.before),
            "run": json.loads(self.run.to_json()) if self.run else None,
        }


def lock(call: Call) -> int:
    """``invoke lock``: lock hosts for a reason and a time, or show the locks that they have (``--list``)."""
    if call["list"]:
        return _on_hosts(call, lambda session, name, _: _found(name, holding.look(session)))
    now = datetime.now(UTC).replace(microsecond=0)
    reason, until = _reason(call["reason"]), now + locks.read_duration(call["for_"] or locks.DEFAULT_FOR)
    force = bool(call["force"])

    def one(session: Session, name: str, password: Secret | None) -> Found:
        wanted = OperatorLock(operator(), reason, name, now, until)
        return _changed(name, holding.put_lock(session, wanted, password=password, force=force), wanted)

    return _on_hosts(call, one)


def unlock(call: Call) -> int:
    """``invoke unlock``."""
    force = bool(call["force"])

    def one(session: Session, name: str, password: Secret | None) -> Found:
        return _changed(name, holding.take_lock_off(session, operator(), password=password, force=force), None)

    return _on_hosts(call, one)


def _on_hosts(call: Call, work: Callable[[Session, str, Secret | None], Found]) -> int:
    """Do ``work`` on each host that was named, and show what came of it."""
    by_name = {member.name: member for member in call.members(call.fleet())}
    connections = Connections(call.password())

    def one(name: str) -> Found:
        with connections.connect(by_name[name]) as session:
            return work(session, name, connections.password(by_name[name]))

    results: Results[Found] = on_each(tuple(by_name), one, stop=connections.close)
    if call["json"]:
        hosts = [found.to_json() for found in results.values]
        print(json.dumps({"hosts": hosts, "errors": errors_json(results.errors)}))
    else:
        out = console.make_console()
        for found in results.values:
            out.print(Text(console.printable(_line(found))))
        show_errors(results.errors)
    return FAILED if results.errors else AS_DESIRED


def _found(host: str, facts: Facts) -> Found:
    lock = locks.operator_lock(facts)
    return Found(host, lock, lock, locks.run_lock(facts))


def _changed(host: str, before: Facts, now: OperatorLock | None) -> Found:
    return Found(host, now, locks.operator_lock(before), locks.run_lock(before))


def _line(found: Found) -> str:
    """One host in one line."""
    if found.lock is not None:
        text = str(found.lock) + (" (expired)" if found.lock.expired(datetime.now(UTC)) else "")
    elif found.before is not None:
        text = f"unlocked; it was {found.before}"
    else:
        text = "not locked"
    if found.run is not None:
        text += f"; {found.run}"
    return f"{found.host}  {text}"


def _reason(text: str) -> str:
    reason = text.strip()
    if not reason:
        raise InputError("say why, for whoever is turned away: --reason RMA; or --list to see the locks", "--reason")
    if len(reason) > REASON_SIGNS or console.printable(reason) != reason or "\n" in reason or "\t" in reason:
        raise InputError(f"found {reason[:40]!r}…, expected one line of at most {REASON_SIGNS} signs", "--reason")
    return reason


def _json(lock: OperatorLock | None) -> dict[str, Any] | None:
    if lock is None:
        return None
    values: dict[str, Any] = json.loads(lock.to_json())
    return {**values, "readable": lock is not locks.UNREADABLE}
