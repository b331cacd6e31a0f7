"""``invoke lock`` and ``invoke unlock``: hosts that nobody shall change for a while. Reading verbs do not mind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from hostwright.apply.journal import state_root
from hostwright.apply.locking import holding, setaside
from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, FAILED, Call, Connections
from hostwright.cli.showing import errors_json, show_errors
from hostwright.common.errors import InputError, Unreachable
from hostwright.common.operator import operator
from hostwright.plan import locks
from hostwright.plan.locks import Holder, OperatorLock
from hostwright.plan.model import Facts
from hostwright.transport.rootshell import RootShell

Aside = tuple[
    OperatorLock | None, OperatorLock | None
]  #: a lock kept on this machine, as it is now and as it was before
REASON_SIGNS = 200  #: of ``--reason``: it stands in one line with the rest


@dataclass(frozen=True, slots=True)
class Found:
    """One host's locks: the operator's, as it is now and as it was before, and whose run works there.

    ``aside`` is the lock that this machine keeps for a host that could not carry it itself, ``aside_before`` likewise.
    """

    host: str
    lock: OperatorLock | None
    before: OperatorLock | None
    run: Holder | None
    aside: OperatorLock | None = None
    aside_before: OperatorLock | None = None
    silent: str = ""  #: why the host itself could not be asked

    def to_json(self) -> dict[str, Any]:
        """The locks as JSON values."""
        return {
            "host": self.host,
            "lock": _json(self.lock),
            "before": _json(self.before),
            "run": json.loads(self.run.to_json()) if self.run else None,
            "set_aside": _json(self.aside),
            "set_aside_before": _json(self.aside_before),
            "silent": self.silent,
        }


def lock(call: Call) -> int:
    """``invoke lock``: lock hosts for a reason and a time, or show the locks that they have (``--list``)."""
    if call["list"]:
        return _on_hosts(call, lambda shell: _found(shell.host, holding.look(shell)), aside=_aside)
    now = datetime.now(UTC).replace(microsecond=0)
    reason, until = _reason(call["reason"]), now + locks.read_duration(call["for_"] or locks.DEFAULT_FOR)
    force = bool(call["force"])

    def one(shell: RootShell) -> Found:
        wanted = OperatorLock(operator(), reason, shell.host, now, until)
        return _changed(shell.host, holding.put_lock(shell, wanted, force=force), wanted)

    return _on_hosts(call, one)


def unlock(call: Call) -> int:
    """``invoke unlock``."""
    force = bool(call["force"])

    def one(shell: RootShell) -> Found:
        return _changed(shell.host, holding.take_lock_off(shell, operator(), force=force), None)

    def aside(inventory: Path, name: str) -> Aside:
        return None, setaside.take_off(
            state_root(), inventory, name, who=operator(), now=datetime.now(UTC), force=force
        )

    return _on_hosts(call, one, aside=aside)


def _aside(inventory: Path, name: str) -> Aside:
    """The lock that this machine keeps for a host, left as it is."""
    lock = setaside.get(state_root(), inventory, name)
    return lock, lock


def _on_hosts(
    call: Call,
    work: Callable[[RootShell], Found],
    *,
    aside: Callable[[Path, str], Aside] = lambda _inventory, _name: (None, None),
) -> int:
    """Do ``work`` on each host that was named, and show what came of it. ``aside`` does the same with the lock that
    this machine keeps for it; where there is one, a host that does not answer is no failure."""
    fleet = call.fleet()
    by_name = {member.name: member for member in call.members(fleet)}
    connections = Connections(call.password())

    def one(name: str) -> Found:
        now, before = aside(fleet.path, name)
        try:
            with connections.connect(by_name[name]) as shell:
                found = work(shell)
        except Unreachable as error:
            if before is None:
                raise
            found = Found(name, None, None, None, silent=error.sentence)
        return replace(found, aside=now, aside_before=before)

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
    return f"{found.host}  " + "; ".join(_parts(found))


def _parts(found: Found) -> Iterator[str]:
    if found.aside is not None:
        yield f"set aside on this machine, {found.aside}{_expired(found.aside)}"
    elif found.aside_before is not None:
        yield f"no longer set aside on this machine; it was {found.aside_before}"
    if found.silent:
        yield f"the host itself could not be asked: {found.silent}"
    else:
        yield _own(found)
    if found.run is not None:
        yield str(found.run)


def _own(found: Found) -> str:
    """What the host's own lock says."""
    if found.lock is not None:
        return f"{found.lock}{_expired(found.lock)}"
    return f"unlocked; it was {found.before}" if found.before is not None else "not locked"


def _expired(lock: OperatorLock) -> str:
    return " (expired)" if lock.expired(datetime.now(UTC)) else ""


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
