"""Reads, sets and removes operators' locks on many hosts, including locks on this machine for unreachable hosts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hostwright.apply.locking import locallocks, operatorlock
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.common.command import Command
from hostwright.common.errors import InputError, Unreachable
from hostwright.common.interruption import on_interrupt
from hostwright.common.operator import operator
from hostwright.common.places import state_root
from hostwright.common.text import printable
from hostwright.plan.host import locks
from hostwright.plan.host.locks import Holder, OperatorLock
from hostwright.plan.model import Facts
from hostwright.plan.targets import Targets
from hostwright.transport.root.rootshell import RootShell

#: pair of operators' locks for one host, stored on this machine: after a call, and before the call
Aside = tuple[OperatorLock | None, OperatorLock | None]
LEFT_UNKNOWN = (
    f"interrupted; hosts that are not shown may or may not be locked; check with {Command('lock', list=True)}"
)
REASON_CHARACTERS = 200  #: maximum number of characters of a reason, which must fit into one line (our choice)


@dataclass(frozen=True, slots=True)
class HostLocks:
    """The locks of one host after a call, and the locks before the call. If the call changed nothing, the two are
    equal.

    ``aside`` is a lock on this machine, set by a rebuild that gives up on an unreachable host.
    """

    host: str
    lock: OperatorLock | None  #: lock that an operator has set on the host
    before: OperatorLock | None
    run: Holder | None  #: run that is changing the host, with the run's lock
    aside: OperatorLock | None = None  #: operator's lock for the host, stored on this machine
    aside_before: OperatorLock | None = None
    silent: str = ""  #: reason why the host is unreachable; empty if the host is reachable

    def to_json(self) -> dict[str, Any]:
        """Return the locks as a JSON object."""
        return {
            "host": self.host,
            "lock": _json(self.lock),
            "before": _json(self.before),
            "run": json.loads(self.run.to_json()) if self.run else None,
            "set_aside": _json(self.aside),
            "set_aside_before": _json(self.aside_before),
            "silent": self.silent,
        }


def probe_host_locks(targets: Targets, connections: Connections, inventory: Path) -> Results[HostLocks]:
    """Read the locks of ``targets``, without root, over one exec channel per host."""

    def kept(name: str) -> Aside:
        lock = locallocks.get(state_root(), inventory, name)
        return lock, lock

    def probed(shell: RootShell) -> HostLocks:
        facts = operatorlock.probe_locks(shell)
        lock = locks.operator_lock(facts)
        return HostLocks(shell.host, lock, lock, locks.run_lock(facts))

    return _each(targets, connections, probed, kept)


def put_locks(
    targets: Targets, connections: Connections, reason: str, lasts: timedelta, *, force: bool = False
) -> Results[HostLocks]:
    """Lock the hosts ``targets`` in the operator's name, for ``reason`` and the duration ``lasts``.

    ``force`` replaces another operator's lock. Errors of hosts are in the results.
    """
    now = datetime.now(UTC).replace(microsecond=0)

    def put(shell: RootShell) -> HostLocks:
        wanted = OperatorLock(operator(), reason, shell.host, now, now + lasts)
        return _changed(shell.host, operatorlock.put_lock(shell, wanted, force=force), wanted)

    with on_interrupt(LEFT_UNKNOWN):
        return _each(targets, connections, put, lambda _: (None, None))


def take_locks_off(
    targets: Targets, connections: Connections, inventory: Path, *, force: bool = False
) -> Results[HostLocks]:
    """Remove the operators' locks of ``targets``, on the hosts and on this machine.

    ``force`` also removes another operator's lock. Errors of hosts are in the results.
    """

    def kept(name: str) -> Aside:
        now = datetime.now(UTC)
        return None, locallocks.take_off(state_root(), inventory, name, who=operator(), now=now, force=force)

    def off(shell: RootShell) -> HostLocks:
        return _changed(shell.host, operatorlock.take_lock_off(shell, operator(), force=force), None)

    with on_interrupt(LEFT_UNKNOWN):
        return _each(targets, connections, off, kept)


def read_reason(text: str) -> str:
    """Return ``text``, the reason for a lock, without surrounding spaces.

    Raises ``InputError`` if the text is empty, too long, or has several lines.
    """
    reason = text.strip()
    if not reason:
        raise InputError(
            "a lock needs a reason for other operators; pass --reason RMA, or --list to show locks", "--reason"
        )
    if len(reason) > REASON_CHARACTERS or printable(reason) != reason or "\n" in reason or "\t" in reason:
        raise InputError(
            f"found {reason[:40]!r}…, expected one line of at most {REASON_CHARACTERS} characters", "--reason"
        )
    return reason


def _each(
    targets: Targets, connections: Connections, work: Callable[[RootShell], HostLocks], kept: Callable[[str], Aside]
) -> Results[HostLocks]:
    by_name = targets.by_name

    def locks_of(name: str) -> HostLocks:
        now, before = kept(name)
        try:
            with connections.connect(by_name[name]) as shell:
                locked = work(shell)
        except Unreachable as error:
            if before is None:
                raise
            locked = HostLocks(name, None, None, None, silent=error.sentence)
        return replace(locked, aside=now, aside_before=before)

    return on_each(tuple(by_name), locks_of, stop=connections.close)


def _changed(host: str, before: Facts, now: OperatorLock | None) -> HostLocks:
    return HostLocks(host, now, locks.operator_lock(before), locks.run_lock(before))


def _json(lock: OperatorLock | None) -> dict[str, Any] | None:
    if lock is None:
        return None
    values: dict[str, Any] = json.loads(lock.to_json())
    return {**values, "readable": lock is not locks.UNREADABLE}
