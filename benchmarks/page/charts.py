"""Charts of the benchmark's cases, as JSON values for ``draw.py``."""

from __future__ import annotations

from typing import Any

from benchmarks.cases.case import Case
from benchmarks.figures.record import CaseRecord
from benchmarks.page.document import digest


def sized(size: int, what: str) -> str:
    """Return ``size`` with its unit ``what`` as text; empty for zero.

    >>> sized(1, "hosts"), sized(24, "hosts"), sized(0, "hosts")
    ('1 host', '24 hosts', '')
    """
    return f"{size} {what.removesuffix('s') if size == 1 else what}" if size else ""


def chart(case: Case, record: CaseRecord) -> dict[str, Any]:
    """Return a chart with a bar for each tool's wall time, grouped by number of hosts and variant."""
    figures = record.figures
    groups: dict[str, list[dict[str, Any]]] = {}
    for series in sorted(figures.series(), key=lambda one: (one.variant != "", one.size)):
        if series.contender in case.PLOTTED:
            found = figures.spread(series.contender, series.size, "wall_s", series.variant)
            name = ", ".join(filter(None, (sized(series.size, case.TABLE.size), series.variant)))
            groups.setdefault(name, []).append(
                {"contender": series.contender, "median": found.median, "least": found.least, "most": found.most}
            )
    return {
        "title": case.TITLE,
        "groups": [{"name": name, "bars": bars} for name, bars in groups.items()],
        "order": list(case.PLOTTED),
        "digest": digest(record),
    }
