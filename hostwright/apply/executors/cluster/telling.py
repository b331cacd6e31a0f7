"""What a worker tells of its work on one host: each event is masked, numbered, kept here and sent, in this order.

What leaves a worker is what a journal may hold: a scheduler keeps the last thousand events of a topic in its memory,
and shows them to whoever may connect to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.apply.executors.cluster.errand import Done, Knock, Message, Reported
from hostwright.apply.executors.cluster.records import AttemptRecord
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.journal.records import IDENTIFIERS, is_kept
from hostwright.common.errors import HostwrightError
from hostwright.plan.model import Answer, Facts

T = TypeVar("T")

SHOWN_S = 1.0  #: our choice: how often it is told how far a step or a file is, which is only shown
_DURABLE = (events.RoleFinished, events.HostEnded)  #: synced to the disk, as in a journal


class Telling:
    """The voice of one attempt at a host: call it with each event, from any thread. ``text`` masks secrets."""

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
        self.text = text  #: masks secrets: set once they are known
        self._lock = threading.Lock()  # guards the fields below, the record, and the order in which messages are sent
        self._number = 0
        self._over = False
        self._shown: dict[str, tuple[Any, float]] = {}

    def ask(self, name: str, mailbox: bytes) -> None:
        """Ask for the word that the attempt may begin."""
        self._say(Knock(name, mailbox))

    def __call__(self, event: Event) -> None:
        """Tell what happened on the host."""
        if isinstance(event, events.HostEnded) or not self._worth(event):
            return  # how the host ended is said at the very end, with all that came of it
        self._say(Reported(masked(event, self.text)), sync=isinstance(event, _DURABLE))

    def end(self, outcome: Outcome | None, error: HostwrightError | None) -> None:
        """Tell what came of it; nothing is told after that."""
        with self._lock:
            if not self._over:
                self._put(Done(masked(outcome, self.text), masked(error, self.text)), sync=True)
                self._over = True
            self._record.close()

    def leave(self) -> None:
        """Say nothing more: somebody else goes on with the host, or the run is over."""
        with self._lock:
            self._over = True
            self._record.close()

    def _say(self, body: Knock | Reported, *, sync: bool = False) -> None:
        with self._lock:
            if not self._over:
                self._put(body, sync=sync)

    def _put(self, body: Knock | Reported | Done, *, sync: bool) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        recorded = not isinstance(body, Reported) or is_kept(body.event)
        self._number += recorded
        message = Message(self._host, self._attempt, self._worker, self._number if recorded else 0, at, body)
        if recorded:
            self._record.add(message, sync=sync)
        self._send(message.packed())

    def _worth(self, event: Event) -> bool:
        """Whether an event is sent that only shows how far something is: at another step, and now and then."""
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
    """A value with every text in it masked, but for names by which things are found again (``IDENTIFIERS``)."""
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
    """The same error with every text in it masked."""
    remake, (kind, args, state) = error.__reduce__()
    shown = {name: _part(name, inner, text) for name, inner in state.items()}
    return remake(kind, masked(args, text), shown)


def _remade(value: Any, text: Callable[[str], str]) -> Any:
    """A dataclass with the same fields, masked. What its ``__init__`` checks was checked before."""
    made = object.__new__(type(value))
    for part in fields(value):
        object.__setattr__(made, part.name, _part(part.name, getattr(value, part.name), text))
    return made


def _part(name: str, value: Any, text: Callable[[str], str]) -> Any:
    """The value of a field of this name, masked; a name by which something is found again stays."""
    return value if name in IDENTIFIERS and isinstance(value, str) else masked(value, text)


def _answer(answer: Answer, text: Callable[[str], str]) -> Answer:
    return Answer(answer.status, text(answer.text), answer.truncated, answer.late_s)
