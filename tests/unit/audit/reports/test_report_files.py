"""Tests of an audit as JSON, CSV, JUnit XML and Prometheus metrics: complete, valid, and safe with hostile text of
hosts.
"""

import csv
import io
import json
from dataclasses import replace

import jsonschema
import pytest
from defusedxml import ElementTree
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from hostwright.audit.fleetaudit import Reading
from hostwright.audit.reports.document import json_schema, read_json, render_json
from hostwright.audit.reports.junit import render_junit
from hostwright.audit.reports.prometheus import render_prometheus
from hostwright.audit.reports.spreadsheet import COLUMNS, FORMULA, render_csv
from tests.unit.support.audits import EACH, LIAR, fleet, host

EVERYTHING = fleet(*EACH, LIAR)
anything = st.text(max_size=60)


def test_json_comes_back_as_it_was():
    assert read_json(render_json(EVERYTHING)) == EVERYTHING


def test_json_keeps_to_the_published_schema():
    jsonschema.validate(json.loads(render_json(EVERYTHING)), json_schema())


def test_the_schema_refuses_what_is_none():
    document = json.loads(render_json(EVERYTHING))
    document["hosts"][0]["status"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema())


def test_json_of_another_schema_is_refused():
    document = {**json.loads(render_json(EVERYTHING)), "schema": 99}
    with pytest.raises(ValueError, match="schema 99"):
        read_json(json.dumps(document))


def test_csv_has_a_row_for_all_that_is_known():
    rows = list(csv.DictReader(io.StringIO(render_csv(EVERYTHING))))
    assert tuple(rows[0]) == COLUMNS
    kinds = {(row["host"], row["kind"]) for row in rows}
    assert {("gpu06", "unread"), ("gpu03", "deviation"), ("gpu05", "finding"), ("gpu01", "gpu")} <= kinds
    (link,) = (row for row in rows if row["kind"] == "deviation" and row["host"] == "gpu03")
    assert (link["have"], link["want"], link["verdict"]) == ("/usr/local/cuda-11.4", "/usr/local/cuda-11.2", "drift")


@given(anything)
def test_no_cell_of_csv_is_a_formula_or_two_lines(text):
    told = replace(EACH[0], readings=(Reading("base", "kernel", text, text),))
    rows = list(csv.reader(io.StringIO(render_csv(fleet(told)))))
    for row in rows:
        assert len(row) == len(COLUMNS)
        assert not any(cell.startswith(FORMULA) or "\n" in cell for cell in row)


def test_junit_counts_failures_and_errors():
    suites = {suite.get("name"): suite for suite in ElementTree.fromstring(render_junit(EVERYTHING)).iter("testsuite")}
    assert (suites["gpu01"].get("failures"), suites["gpu01"].get("errors")) == ("0", "0")
    assert suites["gpu03"].get("failures") == "1"
    assert suites["gpu06"].get("errors") == "4"
    (failure,) = suites["gpu05"].iter("failure")
    assert "Drain the host" in failure.text


@given(anything)
def test_junit_is_xml_whatever_a_host_says(text):
    told = replace(
        LIAR, deviations=tuple(replace(deviation, have=text) for deviation in LIAR.deviations), sentence=text
    )
    ElementTree.fromstring(render_junit(fleet(told)))


def metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_prometheus_tells_states_values_failures_and_cards():
    found = metrics(render_prometheus(EVERYTHING))
    ok = {labels["host"]: value for labels, value in found["hostwright_host_ok"]}
    assert (ok["gpu01"], ok["gpu03"], ok["gpu06"]) == (1.0, 0.0, 0.0)
    layers = {(labels["host"], labels["layer"]): value for labels, value in found["hostwright_layer_ok"]}
    assert (layers["gpu02", "cuda"], layers["gpu03", "cuda"]) == (1.0, 0.0)
    assert ({"host": "gpu05", "layer": "gpu", "rule": "xid-fatal", "grave": "true"}, 1.0) in found["hostwright_finding"]
    assert ({"host": "gpu01", "gpu": "0"}, 40.0) in found["hostwright_gpu_temperature_celsius"]
    assert ({"host": "gpu05", "bus": "0000:3b:00", "xid": "79"}, 1.0) in found["hostwright_xids"]


@given(anything)
def test_no_label_breaks_the_exposition_format(text):
    told = host("gpu01", readings=(Reading("base", "kernel", text),))
    (sample,) = (one for one in metrics(render_prometheus(fleet(told)))["hostwright_reading_ok"])
    assert "\n" not in sample[0]["have"]
