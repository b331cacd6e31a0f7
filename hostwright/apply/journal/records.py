"""Converts events and run headers to records and back. Records are JSON values that may still contain secrets."""

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

#: names of record fields that are never masked. These fields cannot contain text from a host.
IDENTIFIERS = frozenset({"kind", "host", "at", "result", "verb", "hosts", "place", "began", "version", "how"})


#: types of temporary events; only their outcome is recorded
_NOT_RECORDED = (events.Waiting, events.RoleProgress)


def kind_of(event: type[Event]) -> str:
    """Return the kind of a record: the name of the event's class in lowercase words.

    >>> kind_of(events.RoleStarted)
    'role started'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", " ", event.__name__).lower()


def is_kept(event: Event) -> bool:
    """Return whether journals record events of the class of ``event``."""
    if isinstance(event, events.Delivering):
        return event.done_bytes >= event.total_bytes
    return not isinstance(event, _NOT_RECORDED)


def record_of(event: Event) -> dict[str, Any] | None:
    """Return ``event`` as a record without time and facts; ``None`` for an event that journals do not record."""
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
    """Return ``header`` as the first record of a run, with secrets masked."""
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
    """Return the header in ``record``, a run's first record.

    Raises ``ValueError`` if the record is damaged or of another kind.
    """
    if record.get("kind") != RUN_BEGAN:
        raise ValueError("the record of the run's beginning is missing")
    return adapter(RunHeader).validate_python(record)


@dataclass(frozen=True, slots=True)
class RunEnding:
    """The last record of a run: exit status, how and why the run ended, and the number of hosts for each result.

    ``t`` is the run's duration in seconds; ``bytes`` is the size of the run's files.
    """

    status: int
    how: str
    results: Mapping[str, int]
    sentence: str = ""
    t: float | None = None
    bytes: int | None = None


def ending_of(record: Mapping[str, Any]) -> RunEnding | None:
    """Return the ending in ``record``, a run's last record; ``None`` if the record is damaged or of another kind."""
    if record.get("kind") != RUN_ENDED:
        return None
    try:
        return adapter(RunEnding).validate_python(record)
    except ValidationError:
        return None
