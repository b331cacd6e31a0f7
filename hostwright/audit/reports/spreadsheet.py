"""An audit as CSV, with a row for each layer, value, deviation, known failure, GPU and unreadable host."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from hostwright.audit.fleetaudit import FleetAudit, HostAudit
from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS
from hostwright.common.text import printable

COLUMNS = ("host", "status", "kind", "layer", "name", "have", "want", "verdict", "at")
#: first characters of cells that a spreadsheet interprets as formulas (OWASP, CSV injection)
FORMULA = ("=", "+", "-", "@", "\t", "\r")

Row = tuple[str, str, str, str, str, str]


def render_csv(audit: FleetAudit) -> str:
    """Return ``audit`` as CSV (RFC 4180). The first line has the names of the columns."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for host in audit.hosts:
        for kind, *cells in _rows(host):
            writer.writerow([_cell(text) for text in (host.host, host.status, kind, *cells, host.at)])
    return out.getvalue()


def _rows(host: HostAudit) -> Iterator[Row]:
    if host.sentence:
        yield ("unread", "", "", host.sentence, "", "unread")
    for layer in host.layers:
        yield ("layer", layer.name, "", "", "", layer.status)
    for deviation in host.deviations:
        yield ("deviation", deviation.layer, deviation.what, deviation.have, deviation.want, deviation.why)
    for finding in host.findings:
        verdict = "failing" if finding.grave else "warning"
        yield ("finding", finding.layer, finding.rule, "; ".join(finding.evidence), "", verdict)
    for reading in host.readings:
        verdict = "" if reading.want is None else "differs" if reading.differs else "ok"
        yield ("value", reading.layer, reading.name, reading.have, reading.want or "", verdict)
    for gpu in host.gpus:
        yield ("gpu", "gpu", f"{gpu.index} {gpu.bus}", f"{gpu.model} {gpu.serial} {gpu.uuid}".strip(), "", "")
        for column in GPU_COLUMNS:
            if text := column.text(gpu):
                verdict = "warning" if column.bad(gpu) else ""
                yield ("gpu value", "gpu", f"{gpu.index} {column.name}", text, "", verdict)
    for skipped in host.not_checked:
        yield ("not checked", skipped.layer, skipped.check, skipped.reason, "", "")


def _cell(text: str) -> str:
    """Return ``text`` on one line, changed if a spreadsheet would interpret it as a formula."""
    line = " ".join(printable(text).split())
    return f"'{line}" if line.startswith(FORMULA) else line
