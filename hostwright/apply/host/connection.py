"""The connection to one host during a run: a root shell that is reopened if it is lost.

After a lost connection, it is unknown whether the last command ran. So work over the connection must be idempotent, or
must resume where it stopped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import tenacity

from hostwright.apply import events
from hostwright.apply.events import Emit
from hostwright.common.errors import HostwrightError, Unreachable
from hostwright.transport import Output
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.transport.root.rootshell import RootShell

T = TypeVar("T")

FIRST_S = 6.0  #: seconds to retry a first connection that fails (our choice). A restart of sshd takes a second.
LOST_S = 300.0  #: seconds to retry a lost connection (our choice). A switch, a VPN or a host may restart in that time.
#: time limit in seconds of one call of ``HostConnection.use`` (our choice). Waiting for a job may take 6 h.
LONGEST_S = 8 * 3600.0
STEADY_S = 60.0  #: seconds after which a connection counts as stable, so that the retry time starts again (our choice)
BACKOFF_S, MAX_BACKOFF_S = 0.5, 15.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Maximum seconds to retry a connection: ``first_s`` for the first connection, ``lost_s`` for a lost one."""

    first_s: float = FIRST_S
    lost_s: float = LOST_S


class HostConnection:
    """One host's root shell, which is reopened if it is lost.

    Several threads (roles that run in parallel) may use the connection at once.
    """

    def __init__(self, host: str, connect: Callable[[], RootShell], *, emit: Emit, patience: Patience | None = None):
        self.host = host
        self._connect = connect
        self._emit = emit
        self._patience = patience or Patience()
        self._shell: RootShell | None = None
        self._lock = threading.Lock()
        self._connected_s = 0.0
        self._failing_since_s: float | None = None
        self._ever = False
        self._answered = False  #: whether any work over this connection has finished

    @property
    def shell(self) -> RootShell:
        """The open root shell; opened if necessary. Raises ``Unreachable`` if the host cannot be reached."""
        with self._lock:
            if self._shell is None:
                self._emit(events.Waiting(self.host, "a connection"))
                self._shell = self._connect()
                if self._ever:
                    self._emit(events.Note(self.host, "connected again"))
                self._connected_s, self._answered = time.monotonic(), False
                self._ever = True
            return self._shell

    def use(self, work: Callable[[RootShell], T], *, steady: bool = False) -> T:
        """Return ``work(shell)``. If the connection is lost, repeat ``work`` over a new connection, within
        ``Patience``.

        ``work`` must be idempotent. ``steady`` means that ``work`` makes progress even if the connection is lost later,
        such as a file transfer.

        Raises the exceptions of ``work``, and the last ``Unreachable`` after the retries.
        """
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._passes),
            stop=self._spent,
            wait=tenacity.wait_exponential(BACKOFF_S, MAX_BACKOFF_S) + tenacity.wait_random(0.0, BACKOFF_S),
            before_sleep=self._tell,
            reraise=True,
        )
        result: T = again(self._attempt, work, steady)
        return result

    def run(self, script: str, *, timeout_s: float, failure: str, steady: bool = False) -> Output:
        """Call ``RootShell.run``, and repeat the call after a lost connection. So ``script`` must be idempotent."""
        return self.use(lambda shell: shell.run(script, timeout_s=timeout_s, failure=failure), steady=steady)

    def replace(self, shell: RootShell) -> None:
        """Use the open root shell ``shell`` for all further work, such as the shell after a reboot."""
        with self._lock:
            self._shell, self._connected_s, self._ever, self._answered = shell, time.monotonic(), True, True
            self._failing_since_s = None

    def close(self) -> None:
        """Close the connection. The next call that needs a root shell opens a new one."""
        with self._lock:
            shell, self._shell = self._shell, None
        if shell is not None:
            with suppress(HostwrightError):
                shell.close()

    def _attempt(self, work: Callable[[RootShell], T], steady: bool) -> T:
        shell = None
        try:
            shell = self.shell
            result = work(shell)
        except Unreachable:
            self._note_failure(shell, steady)
            raise
        self._answered = True
        return result

    def _note_failure(self, shell: RootShell | None, steady: bool) -> None:
        """Close the failed shell, and start the time limit for retries. If no work finished over this connection, the
        time counts from the opening of the connection.
        """
        since_s = now_s = time.monotonic()
        with self._lock:
            if shell is not None and shell is self._shell:
                self._shell = None
                if not (steady or self._answered):
                    since_s = self._connected_s
                elif now_s - self._connected_s > STEADY_S:
                    self._failing_since_s = None
            if self._failing_since_s is None:
                self._failing_since_s = since_s
        if shell is not None:
            shell.close()

    def _passes(self, error: BaseException) -> bool:
        """Return whether a retry after ``error`` may succeed.

        A booting host refuses even logins that it accepted before.
        """
        if isinstance(error, HostKeyMismatch) or not isinstance(error, Unreachable):
            return False
        return error.passing or self._ever

    def _spent(self, state: tenacity.RetryCallState) -> bool:
        """Return whether the time for retries is over.

        Before the first connection, the time counts from the first attempt, so a host that hangs fails at its own
        timeout.
        """
        if (state.seconds_since_start or 0.0) >= LONGEST_S:
            return True
        if not self._ever:
            return (state.seconds_since_start or 0.0) >= self._patience.first_s
        return time.monotonic() - (self._failing_since_s or 0.0) >= self._patience.lost_s

    def _tell(self, state: tenacity.RetryCallState) -> None:
        error: Any = state.outcome.exception() if state.outcome else None
        wait_s = state.next_action.sleep if state.next_action else 0.0
        reason = error.sentence if isinstance(error, Unreachable) else str(error)
        self._emit(events.Retrying(self.host, "connection", state.attempt_number, wait_s, reason))
