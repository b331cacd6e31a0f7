"""Hosts that try to break out of the page, to fake it, or to drown it."""

from __future__ import annotations

from hostwright.audit.fleetaudit import (
    Deviation,
    Finding,
    FleetAudit,
    HostAudit,
    Layer,
    NotChecked,
    Reading,
    ReleaseRecord,
    ValueSpread,
)
from hostwright.audit.hardware.gpu import Gpu, GpuProcess
from hostwright.audit.reports.trend import TrendPoint
from hostwright.standard.roles.driver.xids.events import event

AT = "2026-11-21T10:00:00+00:00"
TEXTS = (
    "</script><script>window.owned=1</script>",
    "<img src=x onerror=window.owned=1>",
    "\"'><svg onload=window.owned=1><iframe src=javascript:window.owned=1>",
    "<!--<script>",
    "<a href='javascript:window.owned=1'>click</a><base href=//evil.example><form action=//evil.example>",
    "\x1b]0;owned\x07\x1b[2J\x1b[31mroot\x1b[0m\x00",
    "\u202e\u2066drift\u2069 desired \u05d0\u05d1\u05d2",
    "&lt;script&gt;&#60;b&#62;\u2028\u2029\ud800",
    "Z" + "\u0301\u0327\u0489" * 300,
    "<marquee>" + "x" * 65527,
)


def _host(number: int, text: str) -> HostAudit:
    return HostAudit(
        f"gpu{number:02d}", "tensorflow-2.9", AT, "failing", text if number % 2 else "",
        (Layer("driver", "failing"), Layer("gpu", "drift")),
        tuple(Reading("driver", f"{text[:40]}{place}", text, text if place else None, text) for place in range(3)),
        (Deviation("gpu", text, text, text, "drift"),),
        (Finding("xid-fatal", "driver", True, (text, TEXTS[-1]), text, text, False, text),),
        (NotChecked("gpu", text, text),),
        (Gpu(0, text, text, text, text, text, slowdowns=(text,), performance=text,
             processes=(GpuProcess(1, text, text),)),),
        (event(79, text, text, text),), ReleaseRecord(text, text, text, text), (text[:60],), (text,), (text,),
    )  # fmt: skip


def hostile_fleet() -> tuple[FleetAudit, tuple[TrendPoint, ...]]:
    """A host for each trick, their values compared, and a history that remembers them."""
    hosts = tuple(_host(number, text) for number, text in enumerate(TEXTS))
    names = tuple(host.host for host in hosts)
    spread = ValueSpread(
        "base", "kernel", TEXTS[1], tuple((text, (name,)) for text, name in zip(TEXTS, names, strict=True)), "", ()
    )
    versions = {"driver loaded": dict.fromkeys(TEXTS, 1), TEXTS[2]: {TEXTS[3]: 4, TEXTS[4]: 6}}
    points = tuple(TrendPoint(f"2026-11-{day}", {"failing": 10, TEXTS[0]: 3}, versions) for day in (19, 20, 21))
    return FleetAudit(AT, TEXTS[0], hosts, (spread,)), points
