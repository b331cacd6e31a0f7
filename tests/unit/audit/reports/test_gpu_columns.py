"""Tests that each GPU column is declared once and is in every report."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console

from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS, Gauge, GpuColumn
from hostwright.audit.readings import host as readings
from hostwright.audit.reports import prometheus, spreadsheet, table
from hostwright.audit.reports.html import data
from tests.unit.support.audits import CARD, fleet, host

ADDED = GpuColumn(
    "fan speed", lambda gpu: f"{gpu.index + 30} %", lambda gpu: gpu.index == 1, head="fan",
    gauge=Gauge("hostwright_gpu_fan_percent", "Fan of the card", lambda gpu: {"": gpu.index + 30.0}),
    compared=("fan", lambda gpu: f"{gpu.index + 30} %"),
)  # fmt: skip
CARDS = (CARD, replace(CARD, index=1, bus="0000:af:00.0"))


def test_a_column_that_is_added_to_the_table_is_in_every_report(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (readings, table, prometheus, spreadsheet, data):
        monkeypatch.setattr(module, "GPU_COLUMNS", (*GPU_COLUMNS, ADDED))
    audit = fleet(host("gpu01", gpus=CARDS))
    console = Console(file=io.StringIO(), width=400)
    console.print(*table.show_details(audit.hosts[0]))
    assert "fan" in console.file.getvalue() and "31 %" in console.file.getvalue()  # type: ignore[attr-defined]
    rows = {
        row["name"]: (row["have"], row["verdict"]) for row in csv.DictReader(io.StringIO(spreadsheet.render_csv(audit)))
    }
    assert (rows["0 fan speed"], rows["1 fan speed"]) == (("30 %", ""), ("31 %", "warning"))
    assert 'hostwright_gpu_fan_percent{gpu="1",host="gpu01"} 31.0' in prometheus.render_prometheus(audit)
    page = data.details(audit, audit.hosts, {}, "")
    place = page["gpuColumns"].index("fan speed")
    assert [page["gpuValues"][card[4][place]] for card in page["hosts"][0]["gpus"]] == [("30 %", False), ("31 %", True)]


def test_no_two_columns_share_a_name() -> None:
    names = [column.name for column in GPU_COLUMNS]
    gauges = [column.gauge.name for column in GPU_COLUMNS if column.gauge]
    compared = [column.compared[0] for column in GPU_COLUMNS if column.compared]
    assert all(len(set(each)) == len(each) for each in (names, gauges, compared))
