"""Prints the locks of hosts, locked hosts last. Hosts with equal locks are printed on one line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.text import Text

from hostwright.apply.locking.hostlocks import HostLocks
from hostwright.apply.rollout.rollout import Results, result_of
from hostwright.cli import console
from hostwright.cli.views.shared import errors_json, print_document, show_errors, show_sums
from hostwright.common.text import printable
from hostwright.inventory.patterns import counted, headed
from hostwright.plan.host.locks import OperatorLock

NOT_LOCKED = "not locked"


def show_locks(results: Results[HostLocks], *, as_json: bool) -> None:
    """Print the current locks of hosts, after any change by the verbs ``lock`` and ``unlock``."""
    if as_json:
        documents = [host_locks.to_json() for host_locks in results.values]
        print_document("locks", {"hosts": documents, "errors": errors_json(results.errors)})
        return
    out = console.make_console()
    alike: dict[str, list[str]] = {}
    for host_locks in sorted(results.values, key=lambda each: _word(each) != NOT_LOCKED):
        alike.setdefault(_told(host_locks), []).append(host_locks.host)
    for text, hosts in alike.items():
        out.print(Text(printable(f"{headed(hosts)[0] if text == NOT_LOCKED else counted(hosts)}  {text}")))
    show_errors(results.errors)
    show_sums(out, [*map(_word, results.values), *map(result_of, results.errors)])


def _told(host_locks: HostLocks) -> str:
    return "; ".join(_parts(host_locks))


def _word(host_locks: HostLocks) -> str:
    if host_locks.lock is not None or host_locks.aside is not None:
        return "locked"
    return "unlocked" if host_locks.before is not None or host_locks.aside_before is not None else NOT_LOCKED


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
    if host_locks.lock is not None:
        return f"{host_locks.lock}{_expired(host_locks.lock)}"
    return f"unlocked; it was {host_locks.before}" if host_locks.before is not None else NOT_LOCKED


def _expired(lock: OperatorLock) -> str:
    return " (expired)" if lock.expired(datetime.now(UTC)) else ""
