"""One connection to a host, used by several processes: its owner runs what the others ask for.

The others get a session like any other. What goes through the pipes between them stays within processes of our own, so
it may be pickled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from hostwright.common.errors import ChannelRefused, HostError, Unreachable
from hostwright.transport import Output, Readable, Session, Target
from hostwright.transport.session import CAP_BYTES

_PIECE_BYTES = 1 << 20


class LentSession(Session):
    """A session whose commands run over the connection that the process at the other end of ``pipe`` has."""

    def __init__(self, host: Target, pipe: Connection):
        super().__init__(host, "the connection of the host's checks")
        self._pipe = pipe

    def run(
        self,
        command: str,
        *,
        stdin: bytes | Readable | None = None,
        timeout_s: float,
        idle_s: float | None = None,
        cap_bytes: int = CAP_BYTES,
        on_stdout: Callable[[bytes], None] | None = None,
        name: str = "",
    ) -> Output:
        """As that of any session; ``on_stdout`` gets all of it once the command has ended."""
        given = {"stdin": _whole(stdin), "timeout_s": timeout_s, "idle_s": idle_s, "cap_bytes": cap_bytes, "name": name}
        with self._lock:
            self.execs += 1
            try:
                self._pipe.send((command, given))
                answer: Output | HostError = self._pipe.recv()
            except (EOFError, OSError) as error:
                raise Unreachable(self.host.name, "the process that has its connection is gone") from error
        if not isinstance(answer, Output):
            raise answer
        if on_stdout is None:
            return answer
        on_stdout(answer.stdout)
        return Output(answer.status, b"", answer.stderr, answer.truncated, answer.duration_s)

    def _end(self) -> None:
        self._pipe.close()


def _whole(stdin: bytes | Readable | None) -> bytes | None:
    if stdin is None or isinstance(stdin, bytes):
        return stdin
    return b"".join(iter(lambda: stdin.read(_PIECE_BYTES), b""))


class Lender:
    """Runs the commands of the processes at the other ends of ``pipes``, until all of them have ended.

    ``connect`` is called at the first command. Where it fails, every command fails likewise.
    """

    def __init__(self, connect: Callable[[], Session], pipes: Sequence[Connection]):
        self._connect = connect
        self._pipes = pipes
        self._changed = threading.Condition()
        self._opened: Session | HostError | None = None
        self._running = 0

    def lend(self) -> None:
        """Serve each process in a thread; return when the last one has closed its end."""
        threads = [threading.Thread(target=self._serve, args=(pipe,), daemon=True) for pipe in self._pipes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if isinstance(self._opened, Session):
            self._opened.close()

    def _serve(self, pipe: Connection) -> None:
        with suppress(EOFError, OSError):
            while True:
                command, given = pipe.recv()
                pipe.send(self._answer(command, given))

    def _answer(self, command: str, given: dict[str, Any]) -> Output | HostError:
        try:
            return self._run(self._session(), command, given)
        except HostError as error:
            return error
        except Exception as error:  # noqa: BLE001 - told to who asked
            return HostError("", f"{type(error).__name__}: {error}")

    def _session(self) -> Session:
        with self._changed:
            if self._opened is None:
                try:
                    self._opened = self._connect()
                except HostError as error:
                    self._opened = error
            if isinstance(self._opened, HostError):
                raise self._opened
            return self._opened

    def _run(self, session: Session, command: str, given: dict[str, Any]) -> Output:
        """Run a command; where the host takes no more at once (sshd's MaxSessions), once another one has ended."""
        while True:
            with self._changed:
                self._running += 1
            try:
                return session.run(command, **given)
            except ChannelRefused:
                with self._changed:
                    if self._running == 1:
                        raise
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()
            self._await_room()

    def _await_room(self) -> None:
        with self._changed:
            running = self._running
            self._changed.wait_for(lambda: self._running < running or self._running == 0)
