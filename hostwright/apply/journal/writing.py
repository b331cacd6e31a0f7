"""Writes a run's journal from many threads. A write error is reported once and does not stop the run."""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import Any, Self

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.apply.journal.factfiles import write_facts
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.reading import Runs, RunSummary
from hostwright.apply.journal.records import (
    CRASHED,
    ENDED,
    IDENTIFIERS,
    INTERRUPTED,
    RUN_ENDED,
    RUNNING,
    record_of,
    record_of_header,
)
from hostwright.apply.journal.redaction import Redactor
from hostwright.apply.journal.results import results_of
from hostwright.common import errors
from hostwright.common.command import Command
from hostwright.common.errors import NOBODY_READS, HostwrightError, InputError
from hostwright.common.places import (
    AFTER,
    ANOTHER_STATE,
    BEFORE,
    FACTS,
    JOURNAL,
    PRIVATE_FILE,
    facts_file,
    file_mode,
    make_folder,
    refused,
    runs_dir,
)
from hostwright.common.secret import Secret
from hostwright.plan.model import Facts

#: maximum number of characters of the sentence in a run's last record, because readers parse only the journal's end
KEPT_SENTENCE = 2000

KEEP_RUNS = 500  #: maximum number of recorded runs. Above this number or ``KEEP_BYTES``, the oldest runs are removed.
KEEP_BYTES = 1 << 30
KEEP_AT_LEAST = 5  #: minimum number of recorded runs to keep, for ``--resume`` and ``@failed``
_GOING = ".going-"

_RUN_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,100}")
_DURABLE = (events.RoleFinished, events.HostEnded)  #: types of events to sync to disk before the run continues


class Journal:
    """Writes the journal of one run. Call the object with each event, from any thread. Then call ``end`` and ``close``.

    As a context manager, the journal records the end of the run from the exception that ends the block, if any, unless
    ``end`` was called.
    """

    def __init__(self, header: RunHeader, redactor: Redactor, on_trouble: Callable[[str], None]):
        self.header = header
        self.redactor = redactor
        self.ending: Mapping[str, Any] = {}  #: last record of the run; empty before the end of the run
        self._on_trouble = on_trouble
        self._folder = Path()
        self._began_s = time.monotonic()
        self._lock = threading.Lock()  # This lock guards the fields below.
        self._fd: int | None = None
        self._ended = False
        self._ending = True  #: whether the run ends at the end of the context block
        self._torn = False
        self._troubled = False
        self._kept = False
        self._written = 0
        self._bytes = 0
        self._facts: dict[str, int] = {}  #: name of a fact file → size of the file in bytes
        self._seen: set[str] = set()
        self._results: dict[str, str] = {}
        self._sync_lock = threading.Lock()  # This lock is acquired before ``_lock``, never after ``_lock``.
        self._synced = 0

    @classmethod
    def begin(
        cls, root: Path, header: RunHeader, *, secrets: Iterable[Secret], on_trouble: Callable[[str], None]
    ) -> Journal:
        """Start the journal of a run below the state directory ``root``, and remove old runs (see ``prune``).

        If another run has the same ID, a number is appended: ``journal.header.run`` is the final ID. ``on_trouble`` is
        called once if the journal cannot be written.
        """
        if not _RUN_ID.fullmatch(header.run):
            raise ValueError(f"not a run ID: {header.run!r}")
        journal = cls(header, Redactor(secrets), on_trouble)
        try:
            journal._open(root)
        except OSError as error:
            journal._trouble(error, runs_dir(root))
        journal._put(record_of_header(journal.header, journal.redactor), sync=True, cleaned=True)
        if journal._troubled:
            journal._forget()
        journal._kept = not journal._troubled
        return journal

    @classmethod
    def reopened(
        cls, folder: Path, header: RunHeader, *, secrets: Iterable[Secret], on_trouble: Callable[[str], None]
    ) -> Journal:
        """Reopen the journal of the ended run in ``folder``, to ``add`` events from workers. Then call ``close``.

        Raises ``InputError`` if the run is still in progress.
        """
        journal = cls(header, Redactor(secrets), on_trouble)
        journal._folder = folder
        journal._ending = False
        try:
            journal._fd = os.open(journal.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            fcntl.flock(journal._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = os.lseek(journal._fd, 0, os.SEEK_END)
            journal._torn = size > 0 and os.pread(journal._fd, 1, size - 1) != b"\n"
            journal._facts = {f"{FACTS}/{path.name}": path.stat().st_size for path in (folder / FACTS).iterdir()}
        except BlockingIOError as error:
            journal.close()
            raise InputError(f"the run {header.run} is still in progress; wait for its end, or stop it") from error
        except OSError as error:
            journal._trouble(error, journal.path)
        return journal

    @property
    def path(self) -> Path:
        """The path of the journal file of the run."""
        return self._folder / JOURNAL

    @property
    def kept(self) -> bool:
        """Whether this run is recorded: its first record was written, even if later records failed."""
        return self._kept

    def __call__(self, event: Event) -> None:
        """Record ``event``, unless journals do not keep events of its class."""
        self.add(event)

    def add(self, event: Event, at: str = "") -> None:
        """Record ``event``, like a call of the journal object. ``at`` is the time of the event (ISO 8601); the default
        is now.
        """
        record = record_of(event)
        if record is None:
            return
        with self._lock:
            if event.host:
                self._seen.add(event.host)
            if isinstance(event, events.HostEnded):
                self._results[event.host] = event.result
        if isinstance(event, events.Observed) and event.facts is not None:
            record["facts"] = self._keep_facts(event.host, event.facts)
        self._put(record, sync=isinstance(event, _DURABLE), at=at)

    def end(self, status: int, how: str = ENDED, sentence: str = "") -> None:
        """Record the end of the run with its exit status, then close the file. Only the first call has an effect."""
        with self._lock:
            results = results_of(self.header.hosts, self._seen, self._results, running=False)
            record = {
                "kind": RUN_ENDED,
                "status": status,
                "how": how,
                "sentence": self.redactor.text(sentence)[:KEPT_SENTENCE],
                "results": dict(Counter(results.values())),
                "bytes": self._bytes + sum(self._facts.values()),
            }
            self.ending = self.ending or record
        self._put(record, sync=True, last=True)
        self.close()

    def close(self) -> None:
        """Close the file. Without a recorded end, readers regard the run as interrupted."""
        with self._sync_lock, self._lock:
            fd, self._fd = self._fd, None
            if fd is not None:
                with suppress(OSError):
                    os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not self._ending:
            self.close()
            return
        match error:
            case None:
                self.end(0)
            case HostwrightError():
                self.end(error.exit_status, ENDED, str(error))
            case KeyboardInterrupt():
                self.end(errors.INTERRUPTED, INTERRUPTED)
            case BrokenPipeError():  # `| head` or a closed terminal causes this error.
                self.end(NOBODY_READS, INTERRUPTED, "the reader of its output is gone")
            case SystemExit(code=code):
                self.end(code if isinstance(code, int) else int(code is not None))
            case _:
                self.end(1, CRASHED, f"{type(error).__name__}: {error}")

    def _open(self, root: Path) -> None:
        runs = runs_dir(root)
        make_folder(runs)
        self._folder = _claim(runs, self.header.run)
        self.header = replace(self.header, run=self._folder.name)
        make_folder(self._folder / FACTS)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, PRIVATE_FILE)
        os.fchmod(self._fd, file_mode(self._folder))
        with suppress(OSError):  # On a file system without locks, readers check the process instead.
            fcntl.flock(self._fd, fcntl.LOCK_EX)  # A reader may hold this lock, but only briefly.
        prune(root, spare=self.header.run)

    def _forget(self) -> None:
        """Delete the directory of a run if the first record, with the run's command, cannot be written."""
        self.close()
        if self._folder.name == self.header.run:
            rmtree(self._folder, ignore_errors=True)

    def _keep_facts(self, host: str, facts: Facts) -> str:
        """Write the facts of ``host`` to a file. Return the path in the run's directory; empty if writing failed."""
        if self._fd is None:
            return ""
        with self._lock:
            first = facts_file(host, BEFORE)
            name = facts_file(host, AFTER) if first in self._facts else first
        try:
            size = write_facts(self._folder / name, host, _now(), facts, self.redactor)
        except OSError as error:
            self._trouble(error, self._folder / name)
            return ""
        with self._lock:
            self._facts[name] = size
        return name

    def _put(
        self, record: Mapping[str, Any], *, sync: bool, cleaned: bool = False, last: bool = False, at: str = ""
    ) -> None:
        """Append ``record`` to the journal as one line, in one write. ``sync`` waits until the line is on disk.
        ``cleaned`` means that the record contains no secrets; ``last``, that no record may follow.
        """
        if self._fd is None:
            return
        shown = record if cleaned else self.redactor.record(record, IDENTIFIERS)
        # Readers search for these keys at the beginning of a line without parsing the line.
        head = {key: shown[key] for key in ("kind", "host") if key in shown}
        times = {"t": self._seconds(at) if at else round(time.monotonic() - self._began_s, 3), "at": at or _now()}
        line = json.dumps({**head, **times, **shown}).encode("ascii") + b"\n"
        try:
            number = self._append(line, last)
            if sync:
                self._sync(number)
        except OSError as error:
            self._trouble(error, self.path)

    def _seconds(self, at: str) -> float:
        """Return the seconds from the run's start to ``at``; at least 0, because clocks may differ."""
        try:
            passed = datetime.fromisoformat(at) - datetime.fromisoformat(self.header.began)
        except (ValueError, TypeError):
            return 0.0
        return round(max(0.0, passed.total_seconds()), 3)

    def _append(self, line: bytes, last: bool) -> int:
        """Write ``line`` to the journal, and return its number. After an incomplete write, begin a new line first."""
        with self._lock:
            if self._fd is None or self._ended:
                return 0
            self._ended = last
            rest = b"\n" + line if self._torn else line
            self._torn = True
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            self._torn = False
            self._written += 1
            self._bytes += len(line)
            return self._written

    def _sync(self, number: int) -> None:
        """Wait until the line with ``number`` is on disk. Threads that wait at the same time share one fsync."""
        with self._sync_lock:
            with self._lock:
                fd, written = self._fd, self._written
            if fd is not None and self._synced < number:
                os.fsync(fd)
                self._synced = written

    def _trouble(self, error: OSError, path: Path) -> None:
        with self._lock:
            told, self._troubled = self._troubled, True
        if not told:
            less = f", but {Command('runs')} and --resume will miss the rest of it"
            self._on_trouble(
                f"the record of this run cannot be written: {path}: {refused(error, ANOTHER_STATE)}. The run goes on"
                + (less if self._kept else " without a record; --resume cannot continue it")
            )


def _claim(runs: Path, run: str) -> Path:
    """Create the directory for ``run`` below ``runs``. If the name exists, append a number to the name."""
    for number in count(1):
        folder = runs / (run if number == 1 else f"{run}-{number}")
        with suppress(FileExistsError):
            make_folder(folder, exist_ok=False)
            return folder
    raise AssertionError("internal error: the loop ended without a result")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def prune(root: Path, spare: str = "") -> tuple[str, ...]:
    """Remove the oldest runs above ``KEEP_RUNS`` and ``KEEP_BYTES``, except runs in progress and ``spare``.

    Return the IDs of the removed runs.
    """
    removed = []
    total_bytes = 0
    for number, summary in enumerate(Runs(root).list(), start=1):
        total_bytes += _size(summary)
        too_much = number > KEEP_RUNS or (total_bytes > KEEP_BYTES and number > KEEP_AT_LEAST)
        if too_much and summary.state != RUNNING and summary.run != spare:
            _remove(summary.folder)
            removed.append(summary.run)
    # A process that was killed during a removal leaves such a directory.
    for left in runs_dir(root).glob(f"{_GOING}*"):
        rmtree(left, ignore_errors=True)
    return tuple(removed)


def _remove(folder: Path) -> None:
    """Remove the directory of a run. The directory is renamed first, so that no reader finds half of its files."""
    going = folder.with_name(_GOING + folder.name)
    with suppress(OSError):
        folder.rename(going)
        rmtree(going, ignore_errors=True)


def _size(summary: RunSummary) -> int:
    if summary.size_bytes is not None:
        return summary.size_bytes
    total = 0
    for folder, _, names in os.walk(summary.folder):
        for name in names:
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_size
    return total
