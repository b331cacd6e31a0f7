"""Hosts with their locks, one line each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from rich.text import Text

from hostwright.apply.locking.hostlocks import HostLocks
from hostwright.apply.rollout.rollout import Results
from hostwright.cli import console
from hostwright.cli.views.shared import errors_json, show_errors
from hostwright.common.text import printable
from hostwright.plan.host.locks import OperatorLock


def show_locks(results: Results[HostLocks], *, as_json: bool) -> None:
    """What is so, or what became of each host."""
    if as_json:
        hosts = [found.to_json() for found in results.values]
        print(json.dumps({"hosts": hosts, "errors": errors_json(results.errors)}))
        return
    out = console.make_console()
    for found in results.values:
        out.print(Text(printable(locks_line(found))))
    show_errors(results.errors)


def locks_line(found: HostLocks) -> str:
    """One host in one line."""
    return f"{found.host}  " + "; ".join(_parts(found))


def _parts(found: HostLocks) -> Iterator[str]:
    if found.aside is not None:
        yield f"locked on this machine, {found.aside}{_expired(found.aside)}"
    elif found.aside_before is not None:
        yield f"no longer locked on this machine; it was {found.aside_before}"
    if found.silent:
        yield f"the host itself could not be reached: {found.silent}"
    else:
        yield _own(found)
    if found.run is not None:
        yield str(found.run)


def _own(found: HostLocks) -> str:
    """What the host's own lock says."""
    if found.lock is not None:
        return f"{found.lock}{_expired(found.lock)}"
    return f"unlocked; it was {found.before}" if found.before is not None else "not locked"


def _expired(lock: OperatorLock) -> str:
    return " (expired)" if lock.expired(datetime.now(UTC)) else ""
