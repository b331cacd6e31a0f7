"""Finds the result of each host of a run without parsing the whole journal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hostwright.apply.events import HostEnded
from hostwright.apply.journal.records import INTERRUPTED, RUNNING, kind_of

UNTOUCHED, WAITING = "untouched", "waiting"
AS_DESIRED = frozenset({"as desired", "changed"})  #: results of hosts on which no work remains
HOST_ENDED = kind_of(HostEnded)

#: pattern of the beginning of each journal record about a host
_HEAD = re.compile(rb'\{"kind": "([a-z ]+)", "host": ("(?:[^"\\]|\\.)*")')


def results_of(hosts: Iterable[str], seen: Iterable[str], ended: Mapping[str, str], *, running: bool) -> dict[str, str]:
    """Return the result of each host of a run.

    The result is the one in ``ended``, else ``interrupted`` for a host in ``seen``, else ``untouched``. While the run
    is in progress, ``running`` replaces ``interrupted``, and ``waiting`` replaces ``untouched``.
    """
    begun = set(seen)
    open_, unseen = (RUNNING, WAITING) if running else (INTERRUPTED, UNTOUCHED)
    names = dict.fromkeys([*hosts, *sorted(begun)])
    return {host: ended.get(host, open_ if host in begun else unseen) for host in names}


def parsed(line: bytes) -> dict[str, Any] | None:
    """Return ``line``, a line of a journal, as a record; ``None`` if the line is invalid."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("kind"), str) else None


def scan(journal: Path) -> tuple[set[str], dict[str, str]]:
    """Return the hosts with a record in ``journal``, and the result of each host on which the work has ended."""
    seen: set[str] = set()
    ended: dict[str, str] = {}
    try:
        with journal.open("rb") as file:
            for line in file:
                _take(line, seen, ended)
    except OSError:
        pass  # An unreadable journal counts as empty.
    return seen, ended


def _take(line: bytes, seen: set[str], ended: dict[str, str]) -> None:
    match = _HEAD.match(line)
    if match is None or not (line.endswith(b"\n") or parsed(line)):  # If the last line is truncated, it is ignored.
        return
    try:
        host = json.loads(match[2])
    except ValueError:
        return
    if host:
        seen.add(host)
    if match[1] == HOST_ENDED.encode():
        result = (parsed(line) or {}).get("result")
        if isinstance(result, str):
            ended[host] = result
