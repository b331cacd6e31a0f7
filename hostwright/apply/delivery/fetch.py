"""Delivers one file to one host: from another host or this machine by HTTP, over SSH, or from its vendor.

If a transfer ends early, the partial file stays on the host, and the next source sends the missing part.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from hostwright.apply import events
from hostwright.apply.delivery.fetching import fetch_script
from hostwright.apply.delivery.looking import Found, look
from hostwright.apply.delivery.pulling import Grant, HeldInput, Pulled, pull
from hostwright.apply.delivery.pushing import damaged, push
from hostwright.apply.delivery.sources.sources import CONTROLLER, Ticket
from hostwright.common.errors import Stopped, Unreachable

if TYPE_CHECKING:
    from hostwright.apply.delivery.sources.handout import Handout
    from hostwright.apply.host.connection import HostConnection
    from hostwright.apply.run import Run
    from hostwright.stack.stack import Artifact
    from hostwright.transport.root.rootshell import RootShell

#: size in bytes below which a file is sent over SSH, because SSH is faster for small files (our choice)
SMALL_BYTES = 1_000_000
SERVED_TRIES = 3  #: number of tries to send a file by HTTP from this machine before SSH is used
WRONG_TRIES = 3  #: maximum number of times to send a file that arrives with a wrong checksum
FETCH_TIMEOUT_S = 2 * 3600.0  #: time limit in seconds of a download from a vendor, enough for 2.5 GB at 3 Mbit/s
STOPPED = "stopped before all of its files had arrived"
_UNTRIED = ("perl", "gone")  #: reasons of failed downloads that do not show whether the host can connect to the source
TOLD = 20  #: maximum number of progress reports for the transfer of one file

T = TypeVar("T")


@dataclass
class Fetcher:
    """Delivers files to one host, one file at a time, from any source."""

    connection: HostConnection
    run: Run
    cache: str
    seen: str = ""  #: address of this machine that the host's sshd reports
    stopped: threading.Event = field(default_factory=threading.Event)
    _input: HeldInput | None = None
    _ticket: Ticket | None = None

    @property
    def host(self) -> str:
        """The inventory name of the host."""
        return self.connection.host

    def stop(self) -> None:
        """Stop the current transfer, and start no other transfer."""
        self.stopped.set()
        held, ticket, handout = self._input, self._ticket, self.run.handout
        if held:
            held.end()
        if ticket and handout:
            handout.sources.cancel(ticket)

    def fetch(self, artifact: Artifact, role: str) -> None:
        """Let the host fetch the file ``artifact`` from its vendor.

        Raises ``HostError`` if the host cannot fetch the file, and ``Stopped`` after ``stop``.
        """
        self.run.emit(events.Note(self.host, f"{role}: the host fetches {artifact.file} from its vendor"))
        failure, began_s = f"{role}: the host cannot fetch {artifact.file}", time.monotonic()
        script = fetch_script(artifact, self.cache)
        self.use(lambda shell: shell.run(script, timeout_s=FETCH_TIMEOUT_S, failure=failure))
        size, took_s = artifact.size or 0, round(time.monotonic() - began_s, 3)
        sent = {events.VENDOR: size}
        self.run.emit(events.Delivering(self.host, role, artifact.file, size, size, events.VENDOR, sent, took_s))

    def deliver(self, found: Found, role: str, *, served: bool) -> None:
        """Deliver a file that the host lacks, by HTTP if ``served`` is set and the file is not small, else over SSH.

        Raises ``HostError`` or ``ArtifactError`` if the file cannot be delivered, and ``Stopped`` after ``stop``.
        """
        transfer = _Transfer(self, found, role)
        if served and found.item.size >= SMALL_BYTES:
            transfer.from_sources()
        else:
            transfer.over_ssh()
        transfer.report_end()

    def use(self, work: Callable[[RootShell], T]) -> T:
        """Return ``work(shell)``, as ``HostConnection.use`` does.

        Raises ``Stopped`` after ``stop``, and opens no connection.
        """

        def unless_stopped(shell: RootShell) -> T:
            self.check()
            try:
                return work(shell)
            except Unreachable as error:
                self.check(error)
                raise

        return self.connection.use(unless_stopped, steady=True)

    def check(self, error: Exception | None = None) -> None:
        """Raise ``Stopped`` with the cause ``error`` if ``stop`` was called."""
        if self.stopped.is_set():
            raise Stopped(self.host, STOPPED) from error


class _Transfer:
    def __init__(self, fetcher: Fetcher, found: Found, role: str):
        self._fetcher, self._item, self._role = fetcher, found.item, role
        self._at, self._began_s = found.start, time.monotonic()
        self._sent: dict[str, int] = {}  #: name of a source → number of bytes that the host received from this source
        self._parts: list[str] = []  #: names of hosts that sent parts of the file
        self._shown_step, self._wrong = -1, 0
        self._cache = fetcher.cache

    def from_sources(self) -> None:
        there = False
        while not there:
            try:
                there = self._from_one(self._await())
            finally:
                self._handout.tidy()

    def over_ssh(self) -> None:
        before, found = self._at, [Found(self._item, there=False, start=self._at)]

        def send(shell: RootShell) -> None:
            if not found:
                look(shell, [self._item], begun=lambda *_: None, found=found.append, cache=self._cache)
            one = found.pop()
            if not one.there:
                push(shell, one, progress=self._progress(events.OVER_SSH), cache=self._cache)

        self._fetcher.use(send)
        self._count(events.OVER_SSH, before, self._item.size)

    def report_end(self) -> None:
        took_s = round(time.monotonic() - self._began_s, 3)
        self._emit(next(reversed(self._sent), ""), self._item.size, dict(self._sent), took_s)

    @property
    def _handout(self) -> Handout:
        if self._fetcher.run.handout is None:
            raise ValueError("files cannot be fetched over HTTP, because this run has no file server")
        return self._fetcher.run.handout

    def _await(self) -> Ticket:
        fetcher, handout = self._fetcher, self._handout
        fetcher.check()
        ticket = fetcher._ticket = handout.sources.ask(fetcher.host, self._item.sha256)
        if fetcher.stopped.is_set():
            handout.sources.cancel(ticket)
        if not ticket.settled.is_set():
            fetcher.run.emit(events.Waiting(fetcher.host, f"another host that has {self._item.file}"))
        handout.await_source(ticket)
        fetcher._ticket = None
        if ticket.source is None:
            raise Stopped(fetcher.host, f"stopped before {self._item.file} had arrived")
        return ticket

    def _from_one(self, ticket: Ticket) -> bool:
        try:
            if ticket.source == CONTROLLER:
                self._from_here()
                pulled = Pulled("done")
            else:
                pulled = self._from_peer(str(ticket.source))
        except BaseException:
            self._handout.sources.ended(ticket)
            raise
        if pulled.verdict == "done":
            self._handout.sources.done(ticket)
            return True
        self._blame(ticket, pulled)
        return False

    def _blame(self, ticket: Ticket, pulled: Pulled) -> None:
        handout = self._handout
        if pulled.verdict != "wrong" and handout.peer_grant(str(ticket.source)) is None:
            handout.sources.ended(ticket)  # A source whose server has ended is not blamed for the failure.
            return
        handout.sources.failed(ticket, connect=pulled.word == "connect")
        if pulled.verdict == "wrong":
            self._begin_anew(pulled)

    def _begin_anew(self, pulled: Pulled) -> None:
        """Start the transfer over after a wrong checksum. Each other host that sent a part of the file is recorded as
        failed.
        """
        self._handout.sources.blame(self._fetcher.host, self._parts)
        self._wrong += not self._parts
        self._parts, self._at = [], 0
        if self._wrong >= WRONG_TRIES:
            how = f"arrived damaged {WRONG_TRIES} times: its sha256 is {pulled.why}, expected {self._item.sha256}"
            raise damaged(self._fetcher.host, self._item, how)

    def _from_peer(self, peer: str) -> Pulled:
        before, handout = self._at, self._handout
        pulled = self._fetcher.use(lambda shell: self._pull(shell, handout.peer_grant(peer), events.PEER + peer))
        if self._at > before or pulled.verdict == "wrong":
            self._parts.append(peer)
        return pulled

    def _from_here(self) -> None:
        for _ in range(SERVED_TRIES):
            pulled = self._fetcher.use(self._served)
            if pulled.verdict == "done":
                return
            if pulled.verdict == "wrong":
                self._begin_anew(pulled)
            if pulled.word in ("connect", "perl", "gone"):
                break
        self.over_ssh()

    def _served(self, shell: RootShell) -> Pulled:
        host, handout = self._fetcher.host, self._handout
        grant = handout.grant(host, self._item, shell.session.ends, self._fetcher.seen)
        try:
            pulled = self._pull(shell, grant, events.FROM_HERE)
        finally:
            if grant:
                handout.server.withdraw(grant)
        if grant and pulled.word not in _UNTRIED:
            handout.reached(host, grant, well=pulled.word != "connect")
        return pulled

    def _pull(self, shell: RootShell, grant: Grant | None, source: str) -> Pulled:
        fetcher, before = self._fetcher, self._at
        if grant is None:
            return Pulled("failed", "gone", done_bytes=before)
        held = fetcher._input = HeldInput(grant.token)
        self._shown_step = -1
        try:
            fetcher.check()
            progress = self._progress(source)
            pulled = pull(shell, self._item, grant, held, start=before, progress=progress, cache=self._cache)
        finally:
            fetcher._input = None
        self._at = max(before, pulled.done_bytes)
        self._count(source, before, self._at)
        if pulled.verdict == "called off":
            sentence = f"the program that fetches {self._item.file} was killed on the host"
            raise Unreachable(fetcher.host, sentence, passing=True)
        if pulled.word == "perl":
            self._handout.sources.alone(fetcher.host)
        if pulled.verdict != "done":
            self._report_failure(source, pulled)
        return pulled

    def _report_failure(self, source: str, pulled: Pulled) -> None:
        why = pulled.why or pulled.word if pulled.verdict == "failed" else "wrong checksum"
        place = "this machine" if source == events.FROM_HERE else source.removeprefix(events.PEER)
        text = f"{self._role}: {self._item.file} could not be fetched from {place} ({why}); trying another source"
        self._fetcher.run.emit(events.Note(self._fetcher.host, text))

    def _progress(self, source: str) -> Callable[[int], None]:
        def tell(done: int) -> None:
            self._fetcher.check()
            step = done * TOLD // max(self._item.size, 1)
            if step != self._shown_step and done < self._item.size:
                self._shown_step = step
                self._emit(source, done)

        return tell

    def _emit(self, source: str, done: int, sent: dict[str, int] | None = None, seconds: float = 0.0) -> None:
        host, item = self._fetcher.host, self._item
        self._fetcher.run.emit(
            events.Delivering(host, self._role, item.file, done, item.size, source, sent or {}, seconds)
        )

    def _count(self, source: str, before: int, after: int) -> None:
        if after > before:
            self._sent[source] = self._sent.pop(source, 0) + after - before
