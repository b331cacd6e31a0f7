"""The result of each host of a run, found without reading the whole record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hostwright.apply.events import HostEnded
from hostwright.apply.journal.records import INTERRUPTED, RUNNING, kind_of

UNTOUCHED, WAITING = "untouched", "waiting"
AS_DESIRED = frozenset({"as desired", "changed"})  #: nothing is left to do
HOST_ENDED = kind_of(HostEnded)

#: How every record of a host begins; the rest of a line is not needed here.
_HEAD = re.compile(rb'\{"kind": "([a-z ]+)", "host": ("(?:[^"\\]|\\.)*")')


def results_of(hosts: Iterable[str], seen: Iterable[str], ended: Mapping[str, str], *, running: bool) -> dict[str, str]:
    """Each host's result: how the run ended it; else ``interrupted`` for a host with records, and ``untouched`` for one
    without (``running`` and ``waiting`` while the run is in progress)."""
    begun = set(seen)
    open_, unseen = (RUNNING, WAITING) if running else (INTERRUPTED, UNTOUCHED)
    names = dict.fromkeys([*hosts, *sorted(begun)])
    return {host: ended.get(host, open_ if host in begun else unseen) for host in names}


def parsed(line: bytes) -> dict[str, Any] | None:
    """A line as a record; ``None`` for any other line."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("kind"), str) else None


def scan(journal: Path) -> tuple[set[str], dict[str, str]]:
    """The hosts that have a record, and the results of those that the run ended."""
    seen: set[str] = set()
    ended: dict[str, str] = {}
    try:
        with journal.open("rb") as file:
            for line in file:
                _take(line, seen, ended)
    except OSError:
        pass  # nothing is known about a run whose record cannot be read
    return seen, ended


def _take(line: bytes, seen: set[str], ended: dict[str, str]) -> None:
    match = _HEAD.match(line)
    if match is None or not (line.endswith(b"\n") or parsed(line)):  # a last line that was cut off does not count
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
