"""Reads the drain record, the file ``PATH`` on each host that Hostwright drained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hostwright.common.quoting import sh
from hostwright.common.untrusted import json_object
from hostwright.plan.model import Facts, Probe

PATH = "/var/lib/hostwright/drained.json"
SCHEMA = 1
DRAINED = Probe(sh("[ -e %s ] && cat -- %s", PATH, PATH), root=True, cap_bytes=8192, shared=True)
_FIELD_CHARACTERS = 300  #: maximum number of characters of each field in the drain record


@dataclass(frozen=True, slots=True)
class Drained:
    """The content of a host's drain record. Unreadable fields are empty."""

    run: str = ""
    operator: str = ""
    reason: str = ""
    since: str = ""  #: time of the drain (ISO 8601, UTC)

    def __str__(self) -> str:
        who = f"{self.operator or 'somebody'} (run {self.run or 'unknown'})"
        return f"drained by {who} since {self.since or 'an unknown time'}: {self.reason or 'no reason given'}"


def drained(facts: Facts) -> Drained | None:
    """The host's drain record; ``None`` if the host is not drained. If the record is invalid, all fields are empty."""
    answer = facts[DRAINED]
    if not answer.ok:
        return None
    record = json_object(answer.text) or {}
    fields: Mapping[str, Any] = record if record.get("schema") == SCHEMA else {}
    return Drained(*(one_line(fields.get(name)) for name in ("run", "operator", "reason", "since")))


def one_line(value: object) -> str:
    """Return the text ``value`` from a host on one line, shortened and without control characters; empty for other
    values.
    """
    return (
        "".join(char if char.isprintable() else " " for char in value)[:_FIELD_CHARACTERS]
        if isinstance(value, str)
        else ""
    )
