"""Events and headers as records: plain JSON values, from which secrets are still to be removed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.redaction import Redactor
from hostwright.common.input.adapter import adapter
from hostwright.common.places import place_of

SCHEMA = 1
RUN_BEGAN, RUN_ENDED = "run began", "run ended"
ENDED, INTERRUPTED, CRASHED, RUNNING = "ended", "interrupted", "crashed", "running"

#: Fields kept as they are: our own words, and the names by which runs and hosts are found again. No field that a host
#: can fill (a job's role, run and operator are read from the host) is among them.
IDENTIFIERS = frozenset({"kind", "host", "at", "result", "verb", "hosts", "place", "began", "version", "how"})


_NOT_RECORDED = (events.Waiting, events.RoleProgress)  #: temporary; what they lead to is recorded


def kind_of(event: type[Event]) -> str:
    """A record's kind: the event's name in words.

    >>> kind_of(events.RoleStarted)
    'role started'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", " ", event.__name__).lower()


def is_kept(event: Event) -> bool:
    """Whether a journal keeps an event."""
    if isinstance(event, events.Delivering):
        return event.done_bytes >= event.total_bytes
    return not isinstance(event, _NOT_RECORDED)


def record_of(event: Event) -> dict[str, Any] | None:
    """An event as a record, without its time; ``None`` for an event that is not kept. Facts have files of their own."""
    if not is_kept(event):
        return None
    head = {"kind": kind_of(type(event)), "host": event.host}
    tail = {"witness": asdict(event.origin)} if event.origin else {}
    if isinstance(event, events.Observed):
        return {**head, "plan": event.plan.to_json(), **tail}
    body = asdict(event)
    if isinstance(event, events.RoleFinished):
        body = body["result"]
    return {**head, **{key: value for key, value in body.items() if key not in ("host", "origin")}, **tail}


def record_of_header(header: RunHeader, redactor: Redactor) -> dict[str, Any]:
    """The first record of a run, without secrets."""
    options = json.loads(json.dumps(dict(header.options), default=str))
    cleaned = {name: redactor.clean({name: value}, given=True) for name, value in options.items()}
    shown: dict[str, Any] = {}
    for option in cleaned.values():
        shown |= option
    record = {
        "kind": RUN_BEGAN,
        "schema": SCHEMA,
        **asdict(header),
        "argv": [redactor.given(word) for word in header.argv],
        "options": {},
        "place": place_of(header.inventory),
        "masked": [name for name, value in options.items() if cleaned[name] != {name: value}],
    }
    kept = IDENTIFIERS | {"run"}
    return {**redactor.record(record, kept), "options": shown}


def header_of(record: Mapping[str, Any]) -> RunHeader:
    """The inverse of ``record_of_header``; raises ``ValueError`` for any other record, or a damaged one."""
    if record.get("kind") != RUN_BEGAN:
        raise ValueError("not the first record of a run")
    return adapter(RunHeader).validate_python(record)


@dataclass(frozen=True, slots=True)
class RunEnding:
    """The last record of a run: its exit status, how it ended and why, and its hosts counted by result.

    ``t`` is the run's duration in seconds, ``bytes`` the size of its files.
    """

    status: int
    how: str
    results: Mapping[str, int]
    sentence: str = ""
    t: float | None = None
    bytes: int | None = None


def ending_of(record: Mapping[str, Any]) -> RunEnding | None:
    """A record as the last one of a run; ``None`` for any other record, or a damaged one."""
    if record.get("kind") != RUN_ENDED:
        return None
    try:
        return adapter(RunEnding).validate_python(record)
    except ValidationError:
        return None
