"""Sets and removes an operator's lock on a host."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from hostwright.common.command import Command
from hostwright.common.errors import Locked
from hostwright.plan.host import locks
from hostwright.plan.host.locks import OperatorLock
from hostwright.plan.model import Facts
from hostwright.plan.observing import ask
from hostwright.transport.root.rootshell import RootShell

TIMEOUT_S = 30.0  #: time limit in seconds of the program that writes the lock file on a host
TRIES = 5  #: maximum number of tries to change a lock that other operators change at the same time


def probe_locks(shell: RootShell) -> Facts:
    """Return the facts about the locks of a host, read without root."""
    return ask(shell, (locks.LOCK, locks.RUN_LOCK), timeout_s=TIMEOUT_S)


def put_lock(shell: RootShell, lock: OperatorLock, *, force: bool = False) -> Facts:
    """Lock a host with ``lock``. Raises ``Locked`` if another operator has locked the host, unless ``force`` is set.

    Return the facts from before the change, which show the replaced lock.
    """
    return _change_lock(shell, lock.owner, lambda facts: locks.lock_script(lock, facts, force=force), force=force)


def take_lock_off(shell: RootShell, who: str, *, force: bool = False) -> Facts:
    """Remove the lock of the operator ``who`` from a host. ``force`` also removes another operator's lock.

    Return the facts from before the change, which show the removed lock. Without ``force``, raises ``Locked`` for
    another operator's lock.
    """

    def script(facts: Facts) -> str:
        return "" if locks.operator_lock(facts) is None else locks.unlock_script(facts, force=force)

    return _change_lock(shell, who, script, force=force)


def _change_lock(shell: RootShell, who: str, script: Callable[[Facts], str], *, force: bool) -> Facts:
    """Change the lock of a host with the program ``script(facts)``, and return the facts before the change. Start over
    if another operator changed the lock in between.
    """
    for _ in range(TRIES):
        before = probe_locks(shell)
        why_not = "" if force else locks.forbids(locks.operator_lock(before), who, datetime.now(UTC))
        if why_not:
            raise Locked(shell.host, why_not)
        program = script(before)
        if not program:
            return before
        output = shell.attempt(program, timeout_s=TIMEOUT_S)
        if output.status == 0:
            return before
        if output.status != locks.MOVED_STATUS:
            raise shell.failed("the host's lock cannot be changed", output)
    raise Locked(shell.host, f"other operators keep changing the host's lock; see {Command('lock', list=True)}")
