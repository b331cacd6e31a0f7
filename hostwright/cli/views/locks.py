"""Hosts with their locks, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.text import Text

from hostwright.apply.locking.hostlocks import HostLocks
from hostwright.apply.rollout.rollout import Results
from hostwright.cli import console
from hostwright.cli.views.shared import errors_json, print_document, show_errors
from hostwright.common.text import printable
from hostwright.plan.host.locks import OperatorLock


def show_locks(results: Results[HostLocks], *, as_json: bool) -> None:
    """What is so, or what became of each host."""
    if as_json:
        hosts = [host_locks.to_json() for host_locks in results.values]
        print_document("locks", {"hosts": hosts, "errors": errors_json(results.errors)})
        return
    out = console.make_console()
    for host_locks in results.values:
        out.print(Text(printable(locks_line(host_locks))))
    show_errors(results.errors)


def locks_line(host_locks: HostLocks) -> str:
    """One host in one line."""
    return f"{host_locks.host}  " + "; ".join(_parts(host_locks))


def _parts(host_locks: HostLocks) -> Iterator[str]:
    if host_locks.aside is not None:
        yield f"locked on this machine, {host_locks.aside}{_expired(host_locks.aside)}"
    elif host_locks.aside_before is not None:
        yield f"no longer locked on this machine; it was {host_locks.aside_before}"
    if host_locks.silent:
        yield f"the host itself could not be reached: {host_locks.silent}"
    else:
        yield _own(host_locks)
    if host_locks.run is not None:
        yield str(host_locks.run)


def _own(host_locks: HostLocks) -> str:
    """What the host's own lock says."""
    if host_locks.lock is not None:
        return f"{host_locks.lock}{_expired(host_locks.lock)}"
    return f"unlocked; it was {host_locks.before}" if host_locks.before is not None else "not locked"


def _expired(lock: OperatorLock) -> str:
    return " (expired)" if lock.expired(datetime.now(UTC)) else ""
