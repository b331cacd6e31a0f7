"""Tests that an unknown role adds its layer to every report of an audit through its ``audit.py`` alone."""

from __future__ import annotations

import csv
import io
import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from rich.console import Console

from hostwright.audit.auditing import fleet_audit
from hostwright.audit.fleetaudit import FleetAudit
from hostwright.audit.judging.audited import audit_probes
from hostwright.audit.judging.judging import judge
from hostwright.audit.readings.answers import all_values, value_probes
from hostwright.audit.reports.document import render_json
from hostwright.audit.reports.html.html import render_html
from hostwright.audit.reports.junit import render_junit
from hostwright.audit.reports.prometheus import render_prometheus
from hostwright.audit.reports.spreadsheet import render_csv
from hostwright.audit.reports.table import show_audit
from hostwright.fleet import Fleet
from hostwright.plan.model import Answer, Facts
from hostwright.plan.roles.role import in_order
from hostwright.plan.targets import TargetHost
from hostwright.resources.files.files import File
from hostwright.standard.roles.selfaudit import PROGRAM, Selfaudit, selfaudit
from tests.unit.support.madeup import UNITS, MadeUp, provisioned

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
ROLE = '''
from dataclasses import dataclass
from hostwright.plan.roles.role import RoleContext, role

@dataclass(frozen=True, slots=True)
class Widget:
    version: str = "2.8.4"

@role(needs=["cuda"])
def widget(v: Widget, ctx: RoleContext):
    """Widgets."""
    yield from ()
'''
AUDIT = r"""
from hostwright.plan.roles.auditvalue import (
    DISTRIBUTION, AuditValue, FileLine, LibraryVersion, PackageVersion, Snippet, UnitProperty,
)

SNIPPET = Snippet("widget", 'say colour "$(cat /etc/widget)"; exit 3')

def audit_values(v, host):
    yield AuditValue("library", LibraryVersion("libwidget.so.2"), v.version)
    yield AuditValue("package", PackageVersion("widget2"), "2.8.4-1")
    yield AuditValue("daemon", UnitProperty("widgetd@a.service", "SubState"), "running")
    yield AuditValue("colour", SNIPPET.line("colour"), among=DISTRIBUTION)
    yield AuditValue("line", FileLine("/etc/widget"))
"""


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """A fleet of two hosts with the standard roles and the made-up one."""
    folder = tmp_path / "made_up_site" / "widget"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(ROLE)
    (folder / "audit.py").write_text(AUDIT)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "hosts.yml").write_text(
        "all: {hosts: {gpu01: {ansible_host: 192.0.2.1, hostwright_roles: [base, driver, cuda, widget]}}}"
    )
    found = Fleet.load(tmp_path / "hosts.yml")
    role = import_module("made_up_site.widget").widget
    found.roles = in_order({known_role.name: known_role for known_role in (*found.roles, role)})
    yield found
    for name in [name for name in sys.modules if name.partition(".")[0] == "made_up_site"]:
        del sys.modules[name]


@pytest.fixture
def target(fleet: Fleet) -> TargetHost:
    return fleet.targets("gpu01")[0]


@pytest.fixture
def host(tmp_path: Path, target: TargetHost) -> MadeUp:
    """A host with everything installed, but another version of the package."""
    (tmp_path / "host").mkdir()
    found = provisioned(tmp_path / "host", target.stack)
    found.write("/usr/lib/libwidget.so.2.8.4")
    found.link("/usr/lib/libwidget.so.2", "libwidget.so.2.8.4")
    found.program("ldconfig", "echo; printf '\\tlibwidget.so.2 (libc6,x86-64) => /usr/lib/libwidget.so.2\\n'")
    found.program("dpkg-query", "echo installed package widget2=2.8.3-1")
    found.program("systemctl", UNITS.replace("ActiveState", "SubState").format("running"))
    found.write("/etc/widget", "blue\n")
    return found


@pytest.fixture
def audit(target: TargetHost, host: MadeUp) -> FleetAudit:
    facts = dict.fromkeys(audit_probes(target), Answer(1, ""))
    for probe in value_probes(all_values(target.stack.name, target.audit_values)):
        facts[probe] = Answer(0, host.ask(probe.script))
    return fleet_audit([judge(target, Facts(facts), AT)], inventory="x", began=AT)


def test_its_values_are_read_and_compared(audit: FleetAudit):
    read = {
        reading.name: (reading.have, reading.want) for reading in audit.hosts[0].readings if reading.layer == "widget"
    }
    assert read == {
        "library": ("2.8.4", "2.8.4"), "package": ("2.8.3-1", "2.8.4-1"), "daemon": ("running", "running"),
        "colour": ("blue", None), "line": ("blue", None),
    }  # fmt: skip
    found = [deviation for deviation in audit.hosts[0].deviations if deviation.layer == "widget"]
    assert [(deviation.what, deviation.have, deviation.want) for deviation in found] == [
        ("package", "2.8.3-1", "2.8.4-1")
    ]


def test_the_made_up_layer_stands_between_cuda_and_gpu(audit: FleetAudit):
    assert audit.layers.index("cuda") < audit.layers.index("widget")
    assert audit.layers[-1] == "gpu"


def test_every_view_of_an_audit_has_it(audit: FleetAudit):
    out = io.StringIO()
    Console(file=out, width=1000).print(show_audit(audit, {}))
    assert "widget" in out.getvalue().splitlines()[0]
    assert '<th scope="col" class="column"><span>widget</span></th>' in render_html(audit)
    layers = json.loads(render_json(audit))["hosts"][0]["layers"]
    assert {"name": "widget", "status": "new"} in layers
    cases = ET.fromstring(render_junit(audit)).iter("testcase")  # noqa: S314 - our own text
    assert "widget" in {case.get("name") for case in cases}
    metrics = render_prometheus(audit)
    assert 'hostwright_layer_ok{host="gpu01",layer="widget"} 0.0' in metrics
    assert 'have="2.8.3-1",host="gpu01",layer="widget",name="package",want="2.8.4-1"} 0.0' in metrics
    rows = list(csv.reader(io.StringIO(render_csv(audit))))
    assert ["layer", "widget"] in [row[2:4] for row in rows]
    assert ["value", "widget", "package", "2.8.3-1", "2.8.4-1", "differs"] in [row[2:8] for row in rows]


def test_a_host_that_audits_itself_compares_it_too(target: TargetHost):
    states = selfaudit.resources(Selfaudit(), target.context)
    text = next(state.content for state in states if isinstance(state, File) and state.path == PROGRAM)
    assert "widget\tlibrary\tlibrary libwidget.so.2\t\t\t2.8.4\n" in text


def test_two_places_of_one_name_are_refused(target: TargetHost):
    first, *_ = target.audit_values
    other = type(first.where)("/proc/sys kernel osrelease")
    with pytest.raises(ValueError, match="have the same name 'file proc sys kernel osrelease'"):
        value_probes([first, type(first)("x", other)])
