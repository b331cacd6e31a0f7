"""The dates at which statuses and problems began, from the history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

#: mapping from a host, a kind and a name to a start time. The kind is "status", "deviation" or "finding".
Ages = Mapping[tuple[str, str, str], datetime]


def since(ages: Ages, hosts: Iterable[str], kind: str, name: str) -> str:
    """Return ``since 2026-11-18``, or ``since 2026-11-18 to 2026-11-20`` for different days; empty if the start is
    unknown.
    """
    days = sorted({ages[host, kind, name].date().isoformat() for host in hosts if (host, kind, name) in ages})
    if not days:
        return ""
    return f"since {days[0]}" if len(days) == 1 else f"since {days[0]} to {days[-1]}"
