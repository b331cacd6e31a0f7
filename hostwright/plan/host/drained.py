"""Reads the file on a host that records that Hostwright drained the host."""

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
_FIELD_CHARACTERS = 300  #: maximum characters kept of each field in the host's file


@dataclass(frozen=True, slots=True)
class Drained:
    """The record on a host that Hostwright drained it; an unreadable field is empty."""

    run: str = ""
    operator: str = ""
    reason: str = ""
    since: str = ""  #: time at which the host was drained (ISO 8601, UTC)

    def __str__(self) -> str:
        who = f"{self.operator or 'somebody'} (run {self.run or 'unknown'})"
        return f"drained by {who} since {self.since or 'an unknown time'}: {self.reason or 'no reason given'}"


def drained(facts: Facts) -> Drained | None:
    """The drain record of the host; ``None`` if the host is not drained. Only Hostwright writes the file, so the host
    counts as drained whatever the file contains.
    """
    answer = facts[DRAINED]
    if not answer.ok:
        return None
    record = json_object(answer.text) or {}
    fields: Mapping[str, Any] = record if record.get("schema") == SCHEMA else {}
    return Drained(*(one_line(fields.get(name)) for name in ("run", "operator", "reason", "since")))


def one_line(value: object) -> str:
    """Return the text on one line, without control characters. For texts from a host, and for environment variables."""
    return (
        "".join(char if char.isprintable() else " " for char in value)[:_FIELD_CHARACTERS]
        if isinstance(value, str)
        else ""
    )
