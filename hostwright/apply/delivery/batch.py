"""Delivers the files of one plan to a host. One thread checks which files the host has; another delivers the missing
files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostwright.apply.delivery.fetch import STOPPED, Fetcher
from hostwright.apply.delivery.looking import Found, StoredFile, look
from hostwright.common.errors import HostError, HostwrightError, Stopped, Unreachable
from hostwright.common.text import count, shown_bytes
from hostwright.common.untrusted import guarded

if TYPE_CHECKING:
    from hostwright.apply.delivery.sources.settings import FileSettings
    from hostwright.apply.host.connection import HostConnection
    from hostwright.apply.run import Run
    from hostwright.stack.stack import Artifact

ROOM_BYTES = 64 * 1024 * 1024  #: number of bytes of disk space to leave free on a host (our choice)
END_S = 5.0  #: time limit in seconds for file transfers to end after a stop (our choice)


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file (``artifact``) that ``role`` needs on a host."""

    role: str
    artifact: Artifact


@dataclass(eq=False)
class _File:
    wanted: WantedFile
    order: int
    served: bool
    item: StoredFile | None = None
    found: Found | None = None
    urgent: bool = False
    error: HostwrightError | None = None
    settled: threading.Event = field(default_factory=threading.Event)

    def settle(self, error: HostwrightError | None = None) -> None:
        """Mark the file as delivered, or as failed with ``error``. Only the first call has an effect."""
        if not self.settled.is_set():
            self.error = error
            self.settled.set()

    @property
    def missing_bytes(self) -> int:
        return self.item.size - (self.found.start if self.found else 0) if self.item else 0


def served(run: Run, settings: FileSettings, host: str, artifact: Artifact) -> bool:
    """Return whether ``host`` may fetch the file ``artifact`` by HTTP from this machine and from other hosts."""
    if settings.way != "pull" or run.handout is None or not run.handout.takes(host):
        return False
    return not artifact.private and artifact.name not in run.files


class Batch:
    """Delivers the files ``wanted`` to one host, until all have arrived or ``end`` is called."""

    def __init__(self, connection: HostConnection, run: Run, settings: FileSettings, wanted: Sequence[WantedFile]):
        self._host, self._run, self._settings = connection.host, run, settings
        self._fetcher = Fetcher(connection, run, settings.cache)
        self._files: dict[str, _File] = {}  #: name of an artifact → file; two names may share one file
        self._queue: list[_File] = []
        self._looking = False
        self._free = 0
        self._change = threading.Condition()
        self._threads: list[threading.Thread] = []
        for one in wanted:
            self._add(one)

    def begin(self) -> None:
        """Start the thread that checks the host's files, and the thread that delivers files."""
        asked = list(dict.fromkeys(file for file in self._files.values() if file.item))
        self._looking = bool(asked)
        if asked:
            self._start("look", lambda: self._look(asked))
        if asked or self._queue:
            self._start("files", self._deliver_all)

    def wait(self, artifacts: Sequence[Artifact]) -> None:
        """Wait until ``artifacts`` have arrived on the host. These files are delivered before all other files.

        Raises the error of the first file in ``artifacts`` that failed.
        """
        files = [self._files[artifact.name] for artifact in artifacts]
        with self._change:
            for file in files:
                file.urgent = True
        for file in files:
            file.settled.wait()
            if file.error is not None:
                raise file.error

    def cut(self) -> None:
        """Stop the current transfer, and start no other transfer."""
        self._lose(Stopped(self._host, STOPPED))

    def end(self) -> None:
        """Stop the delivery as ``cut`` does, and wait up to ``END_S`` for each delivery thread."""
        self.cut()
        for thread in self._threads:
            thread.join(END_S)

    def _add(self, wanted: WantedFile) -> None:
        artifact = wanted.artifact
        file = _File(wanted, len(self._files), served(self._run, self._settings, self._host, artifact))
        if self._settings.fetches(artifact):
            self._queue.append(file)
        else:
            try:
                file.item = StoredFile.of(artifact, self._run.locate(artifact))
            except HostwrightError as error:
                file.settle(error)
        same = (one for one in self._files.values() if file.item and one.item and one.item.key == file.item.key)
        self._files[artifact.name] = next(same, file)

    def _start(self, what: str, work: Callable[[], None]) -> None:
        def guard() -> None:
            try:
                with guarded(self._host):
                    work()
            except HostwrightError as error:
                self._lose(error)

        thread = threading.Thread(target=guard, name=f"{what}-{self._host}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _lose(self, error: HostwrightError) -> None:
        """Stop all transfers. Every file that has not arrived fails with ``error``."""
        self._fetcher.stop()
        for file in self._files.values():
            file.settle(error)
        with self._change:
            self._looking = False
            self._queue.clear()
            self._change.notify_all()

    def _look(self, asked: Sequence[_File]) -> None:
        by_item = {file.item: file for file in asked if file.item}
        self._fetcher.use(
            lambda shell: look(
                shell,
                tuple(by_item),
                begun=self._note_begun,
                found=lambda one: self._learn(by_item[one.item], one),
                cache=self._settings.cache,
            )
        )
        with self._change:
            self._looking = False
            self._change.notify_all()

    def _note_begun(self, seen: str, free: int) -> None:
        with self._change:
            self._fetcher.seen, self._free = seen, free

    def _learn(self, file: _File, found: Found) -> None:
        with self._change:
            if file.found is not None:
                return
            file.found = found
            if not found.there and not file.settled.is_set():
                self._queue.append(file)
                self._change.notify_all()
        if found.there:
            file.settle()
            if file.served and self._run.handout:
                self._run.handout.sources.has(self._host, found.item.sha256)

    def _deliver_all(self) -> None:
        while (file := self._next()) is not None:
            try:
                with guarded(self._host):
                    self._deliver(file)
            except (Stopped, Unreachable):
                raise  # After a stop or a lost connection, no other file can be delivered.
            except HostwrightError as error:
                file.settle(error)
            else:
                file.settle()

    def _next(self) -> _File | None:
        with self._change:
            self._change.wait_for(lambda: self._queue or not self._looking)
            if not self._queue:
                return None
            self._queue.sort(key=lambda file: (not file.urgent, file.order))
            return self._queue.pop(0)

    def _deliver(self, file: _File) -> None:
        if file.found is None:
            self._fetcher.fetch(file.wanted.artifact, file.wanted.role)
            return
        with self._change:
            coming = [file, *(other for other in self._queue if other.item)]
            if file.missing_bytes + ROOM_BYTES > self._free:
                wanted = sum(other.missing_bytes for other in coming)
                raise _no_room(self._host, self._settings.cache, wanted, len(coming), self._free)
            self._free -= file.missing_bytes
        self._fetcher.deliver(file.found, file.wanted.role, served=file.served)


def _no_room(host: str, cache: str, wanted: int, files: int, free: int) -> HostError:
    of = count(files, "file")
    return HostError(
        host,
        f"not enough disk space in {cache}: {shown_bytes(wanted)} needed for {of}, {shown_bytes(free)} available; "
        "free disk space",
    )
