"""The alert rules and the dashboard of ``docs/monitoring``: taken by Prometheus' own ``promtool`` and by Grafana's own
types, and about metrics that there are."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from hostwright.audit.reports.prometheus import render_prometheus
from hostwright.prove.reports.prometheus import render_prometheus as render_proofs
from tests.lab.unpacking import unpack
from tests.places import PROJECT
from tests.unit.support.audits import EACH, fleet
from tests.unit.support.documents import text_of
from tests.unit.support.proofs import fleet as proofs
from tests.unit.support.proofs import host, result, ticks

FOLDER = PROJECT / "docs" / "monitoring"
ALERTS = FOLDER / "alerts.yml"
ASKED = Path(__file__).with_name("alerts_test.yml")
BOARD: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text("utf-8"))
RULES = [rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"] for rule in group["rules"]]
_METRIC = re.compile(r"\bhostwright_[a-z_]+")


@pytest.fixture(scope="module")
def promtool() -> str:
    """Prometheus' own checker; where it is missing, that of Debian's package, which is unpacked and not installed."""
    if found := shutil.which("promtool"):
        return found
    try:
        return str(unpack("promtool", ("prometheus",)) / "usr" / "bin" / "promtool")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("promtool is not on this machine, and apt cannot fetch the package prometheus")


def asked(promtool: str, *words: str) -> str:
    done = subprocess.run([promtool, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_takes_the_rules(promtool: str) -> None:
    assert f"{len(RULES)} rules found" in asked(promtool, "check", "rules", "--lint=all", str(ALERTS))


def test_each_alert_comes_when_it_should_and_only_then(promtool: str) -> None:
    assert "SUCCESS" in asked(promtool, "test", "rules", str(ASKED))
    cases = [case for test in yaml.safe_load(ASKED.read_text("utf-8"))["tests"] for case in test["alert_rule_test"]]
    names = {rule["alert"] for rule in RULES}
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names, "each is seen to come"
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names, "and not to come"


def test_promtool_sees_what_is_wrong(promtool: str, tmp_path: Path) -> None:
    wrong = ALERTS.read_text("utf-8").replace("absent(", "absnt(", 1)
    (tmp_path / "alerts.yml").write_text(wrong)
    with pytest.raises(AssertionError, match="absnt"):
        asked(promtool, "check", "rules", str(tmp_path / "alerts.yml"))


def metrics() -> set[str]:
    """The metrics that there are, as they are written."""
    texts = (
        render_prometheus(fleet(*EACH)),
        render_proofs(proofs(host("gpu01", result(ticks(2.5))))),
        (PROJECT / "templates" / "selfaudit" / "selfaudit.sh.j2").read_text("utf-8"),
    )
    return {name for text in texts for name in _METRIC.findall(text)}


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", ()))
    yield from (str(one["query"]) for one in BOARD["templating"]["list"])


def test_alerts_and_panels_ask_for_metrics_that_there_are() -> None:
    named = {name for text in expressions() for name in _METRIC.findall(text)}
    assert named - metrics() == set()
    assert metrics() - named - SILENT == set(), "nothing shows these, and SILENT does not say why"


#: what is written for those who ask, and neither alerts nor is shown
SILENT = {
    "hostwright_aged",  # support ends on a day that is known before: a list to plan by, no alert
    "hostwright_audit_duration_seconds",
    "hostwright_gpu_memory_bytes",
    "hostwright_gpu_pcie_width_lanes",
    "hostwright_layer_ok",  # a host's worst layer is its status
    "hostwright_prove_duration_seconds",
    "hostwright_prove_host_status",  # its outcomes are shown, proof by proof
}


def test_commands_and_links_of_alerts_are_ours() -> None:
    for rule in RULES:
        for command in re.findall(r"`(hostwright [^`]+)`", str(rule["annotations"])):
            assert command.split()[1] in {"audit", "doctor", "plan", "provision", "prove"}, command
    links = [rule["annotations"]["documentation"] for rule in RULES if "documentation" in rule["annotations"]]
    assert links == ["hostwright doctor --explain {{ $labels.rule }}"]
    assert "### `xid-fatal`" in text_of("docs/failures/gpu.md"), "a rule's name is its section's"


def test_every_panel_can_be_read_and_asks_the_source_that_is_chosen() -> None:
    """A board that names the source of the machine on which it was made finds none elsewhere."""
    sources = {json.dumps(one["datasource"]) for one in walk(BOARD) if "datasource" in one}
    assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}
    assert BOARD["templating"]["list"][0]["type"] == "datasource"
    shown = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
    assert {panel["type"] for panel in shown} == {"stat", "table", "timeseries"}, "none of those that Grafana dropped"
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in shown)
    places = [cell for panel in BOARD["panels"] for cell in cells(**panel["gridPos"])]
    assert len(places) == len(set(places)), "panels lie on each other"
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def cells(x: int, y: int, w: int, h: int) -> Iterator[tuple[int, int]]:
    assert x + w <= 24, "wider than Grafana's grid"
    yield from ((column, line) for column in range(x, x + w) for line in range(y, y + h))


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(part)


def lost(board: dict[str, Any]) -> set[str]:
    """What Grafana's own types do not know of a dashboard: they drop it, or hold another value."""
    register_default_plugins()
    return set(_lost(board, json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder)), "$"))


def _lost(given: Any, kept: Any, place: str) -> Iterator[str]:
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            yield from _lost(value, kept[name], f"{place}.{name}") if name in kept else (f"{place}.{name}",)
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from _lost(one, other, f"{place}[{number}]")
    elif given != kept:
        yield place


def test_grafana_knows_all_that_the_dashboard_says() -> None:
    assert lost(BOARD) == set()


def test_grafana_would_tell_a_misspelt_field() -> None:
    board = copy.deepcopy(BOARD)
    board["panels"][1]["options"]["colourMode"] = "value"
    board["templating"]["list"][0]["lable"] = "source"
    assert lost(board) == {"$.panels[1].options.colourMode", "$.templating.list[0].lable"}
