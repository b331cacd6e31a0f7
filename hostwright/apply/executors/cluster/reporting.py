"""Reports one attempt at a host from a worker. Each event is masked, numbered, stored on the worker, and sent.

A worker sends only data that a journal may contain, because all clients of a scheduler can read all events. The file on
the worker fills gaps in the run's journal after a crash.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.apply.executors.cluster.messages import Claim, Done, Message, Reported
from hostwright.apply.executors.cluster.sites import remove_unused
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.journal.records import IDENTIFIERS, is_kept
from hostwright.common.errors import HostwrightError
from hostwright.common.places import PRIVATE_FILE, make_folder, plain_name, state_root
from hostwright.plan.model import Answer, Facts

T = TypeVar("T")

SHOWN_S = 1.0  #: minimum seconds between two unrecorded progress reports on the same step (our choice)
_DURABLE = (events.RoleFinished, events.HostEnded)  #: types of events to sync to disk before sending
FOLDER = "attempts"  #: directory for records in the state directory. Each run has a directory with a file per attempt.
LONGEST = 64 << 20  #: maximum number of bytes of one recorded message. The facts of a host take a few hundred kB.
_LENGTH = struct.Struct(">I")
_RUN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,120}")


class Reporter:
    """Reports the events of one attempt at a host. Call the object with each event, from any thread.

    The attribute ``text`` is a function that masks the secrets in a text.
    """

    def __init__(
        self,
        host: str,
        attempt: str,
        worker: str,
        *,
        send: Callable[[dict[str, Any]], None],
        record: AttemptRecord,
        text: Callable[[str], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._host, self._attempt, self._worker = host, attempt, worker
        self._send, self._record, self._clock = send, record, clock
        self.text = text  #: function that masks secrets in a text; replaced when the secrets are known
        self._lock = threading.Lock()  # This lock guards the fields below, the record, and the order of messages.
        self._number = 0
        self._over = False
        self._shown: dict[str, tuple[Any, float]] = {}

    def ask(self, name: str, mailbox: bytes) -> None:
        """Request permission for the attempt to begin. ``name`` identifies the worker; ``mailbox`` is the public key
        for the task's secrets.
        """
        self._send_body(Claim(name, mailbox))

    def __call__(self, event: Event) -> None:
        """Report ``event`` on the attempt's host."""
        if isinstance(event, events.HostEnded) or not self._is_due(event):
            return  # The method ``end`` reports ``HostEnded`` together with the outcome.
        self._send_body(Reported(masked(event, self.text)), sync=isinstance(event, _DURABLE))

    def end(self, outcome: Outcome | None, error: HostwrightError | None) -> None:
        """Report the outcome of the work on the host, or the error of this work, and send nothing more."""
        with self._lock:
            if not self._over:
                self._put(Done(masked(outcome, self.text), masked(error, self.text)), sync=True)
                self._over = True
            self._record.close()

    def leave(self) -> None:
        """Send no further messages, because another worker continues with the host or the run is over."""
        with self._lock:
            self._over = True
            self._record.close()

    def _send_body(self, body: Claim | Reported, *, sync: bool = False) -> None:
        with self._lock:
            if not self._over:
                self._put(body, sync=sync)

    def _put(self, body: Claim | Reported | Done, *, sync: bool) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        recorded = not isinstance(body, Reported) or is_kept(body.event)
        self._number += recorded
        message = Message(self._host, self._attempt, self._worker, self._number if recorded else 0, at, body)
        if recorded:
            self._record.add(message, sync=sync)
        self._send(message.packed())

    def _is_due(self, event: Event) -> bool:
        """Return whether to send ``event``. A progress event is due if its step is new, or if ``SHOWN_S`` have passed
        since the last progress event.
        """
        stage: Any
        match event:
            case events.RoleProgress(role=role, progress=progress):
                key, stage = f"step {role}", (progress.number, progress.retry)
            case events.Delivering(role=role, artifact=artifact, done_bytes=done, total_bytes=total, source=source):
                key, stage = f"file {role} {artifact}", (done >= total, source)
            case _:
                return True
        now_s = self._clock()
        with self._lock:
            before, since_s = self._shown.get(key, (None, 0.0))
            if before == stage and now_s - since_s < SHOWN_S:
                return False
            self._shown[key] = stage, now_s
        return True


def masked(value: T, text: Callable[[str], str]) -> T:
    """Return ``value`` with each text masked by ``text``, except names by which records are found (``IDENTIFIERS``)."""
    made: Any = value
    if isinstance(value, str):
        made = text(value)
    elif isinstance(value, Facts):
        answers = {**value, **value.late}
        made = Facts({probe: _answer(answer, text) for probe, answer in answers.items()})
    elif is_dataclass(value) and not isinstance(value, type):
        made = _remade(value, text)
    elif isinstance(value, HostwrightError):
        made = masked_error(value, text)
    elif isinstance(value, Mapping):
        made = {key: masked(inner, text) for key, inner in value.items()}
    elif isinstance(value, (tuple, list)):
        made = type(value)(masked(inner, text) for inner in value)
    result: T = made
    return result


def masked_error(error: HostwrightError, text: Callable[[str], str]) -> HostwrightError:
    """Return a copy of ``error`` with each text masked by ``text``."""
    remake, (kind, args, state) = error.__reduce__()
    shown = {name: _part(name, inner, text) for name, inner in state.items()}
    return remake(kind, masked(args, text), shown)


def _remade(value: Any, text: Callable[[str], str]) -> Any:
    """Return a copy of the dataclass ``value`` with masked fields, without a call of ``__init__``."""
    made = object.__new__(type(value))
    for part in fields(value):
        object.__setattr__(made, part.name, _part(part.name, getattr(value, part.name), text))
    return made


def _part(name: str, value: Any, text: Callable[[str], str]) -> Any:
    return value if name in IDENTIFIERS and isinstance(value, str) else masked(value, text)


def _answer(answer: Answer, text: Callable[[str], str]) -> Answer:
    return Answer(answer.status, text(answer.text), answer.truncated, answer.late_s)


def folder_of(run: str, root: Path | None = None) -> Path:
    """Return the directory with the files of this worker's attempts. Raises ``ValueError`` for an invalid run ID."""
    if not _RUN.fullmatch(run):
        raise ValueError(f"not a run ID: {run!r}")
    return (root or state_root()) / FOLDER / run


class AttemptRecord:
    """The file on a worker's machine to which the messages of one attempt are appended.

    A write error is ignored, so that a full disk does not stop the work.
    """

    def __init__(self, path: Path):
        self._path = path
        self._fd: int | None = None

    @classmethod
    def begin(cls, run: str, host: str, attempt: str, root: Path | None = None) -> Self:
        """Create the file for the attempt at ``host`` in the run ``run``. ``root`` defaults to ``state_root()``."""
        folder = folder_of(run, root)
        record = cls(folder / f"{plain_name(host)}.{attempt}")
        with suppress(OSError):
            make_folder(folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            record._fd = os.open(record._path, flags, PRIVATE_FILE)
        return record

    def add(self, message: Message, *, sync: bool = False) -> None:
        """Append ``message`` to the file; with ``sync``, wait until the message is on disk."""
        if self._fd is None:
            return
        body = pickle.dumps(message)
        try:
            whole = _LENGTH.pack(len(body)) + body
            if os.write(self._fd, whole) < len(whole):
                self.close()  # Messages after an incomplete one would be unreadable.
            elif sync:
                os.fsync(self._fd)
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the file. Later messages are not stored."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)


def kept(run: str, known: Mapping[str, int], root: Path | None = None) -> list[Message]:
    """Return the stored messages of ``run`` with higher numbers than in ``known``, in order for each attempt."""
    messages: list[Message] = []
    with suppress(OSError):
        for path in sorted(folder_of(run, root).iterdir()):
            messages += [each for each in _read(path) if each.number > known.get(each.attempt, 0)]
    return messages


def _read(path: Path) -> Iterator[Message]:
    with suppress(Exception), path.open("rb") as file:  # Damaged data may raise any error.
        while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            if length > LONGEST or len(body := file.read(length)) < length:
                return
            message = pickle.loads(body)  # noqa: S301 - our own file, mode 0600
            if isinstance(message, Message):
                yield message


def forget(run: str, root: Path | None = None) -> None:
    """Delete the stored messages of ``run``, and all messages unused for ``KEPT_S``. Call this once the run's journal
    is complete.
    """
    folder = folder_of(run, root)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        remove_unused(folder.parent)
