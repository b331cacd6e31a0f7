"""Tests of an audit's advisories: software that gets no fixes, or is older than a security bulletin requires."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from hostwright.audit.auditing import fleet_audit
from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.judging.judging import judge
from hostwright.audit.reports.prometheus import render_prometheus
from hostwright.audit.reports.table import show_audit
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.model import Answer, Facts
from hostwright.plan.planning import plan_host
from hostwright.resources.packages.packages import DPKG
from hostwright.stack.ages import NONE

AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
TOOLKIT = "nvidia-container-toolkit"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> TargetHost:
    folder = tmp_path_factory.mktemp("inventory")
    (folder / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    return Fleet.load(folder).targets("all")[0]


def audited(target: TargetHost, packages: str) -> HostAudit:
    """The audit of a host with only these packages."""
    facts = Facts({probe: Answer(1, "") for probe in target.desired.probes()})
    return judge(target, Facts({**facts, DPKG: Answer(0, packages)}), AT)


@pytest.mark.parametrize(
    ("packages", "sentences"),
    [
        (f"{TOOLKIT}\t1.17.8-1\tii \n", ["container-toolkit 1.17.8-1 is below the floor of June 2026 (1.19.1)"]),
        (f"{TOOLKIT}\t1.20.0-1\tii \n", []),
        (f"{TOOLKIT}\t1.17.8-1\trc \n", []),  # removed, except for its configuration
        ("datacenter-gpu-manager-4-core\t1:4.5.2-1\tii \n", ["dcgm 1:4.5.2-1 is below the floor of July 2026 (4.5.3)"]),
        ("bash\t5.2\tii \n", []),
        (
            "nvidia-driver-580-server\t580.95.05-0ubuntu0.22.04.1\tii \nnvidia-driver-580\t580.95.05-1\tii \n",
            ["driver 580.95.05-0ubuntu0.22.04.1 is below the floor of May 2026 (580.159.03)"],
        ),
        (
            "cuda-toolkit-12-8\t12.8.1-1\tii \ncuda-toolkit-12-8-config-common\t12.8.90-1\tii \n",
            ["cuda 12.8.1-1: support for NVIDIA's container images with 12.8 ended in February 2026"],
        ),
    ],
)
def test_what_is_on_a_host_counts_whoever_installed_it(target: TargetHost, packages: str, sentences: list[str]) -> None:
    host = audited(target, packages)
    assert [one.sentence for one in host.aged] == sentences
    assert not [finding for finding in host.findings if "floor" in str(finding)]


def test_without_advisories_nothing_is_said(target: TargetHost) -> None:
    assert (
        audited(replace(target, advisories=NONE, memory=type(target.memory)()), f"{TOOLKIT}\t1.17.8-1\tii \n").aged
        == ()
    )


def test_the_table_says_it_once_for_all_hosts_and_there_is_a_metric(target: TargetHost) -> None:
    one = audited(target, f"{TOOLKIT}\t1.17.8-1\tii \n")
    audit = fleet_audit((one, replace(one, host="gpu02")), inventory="fleet", began=AT)
    console = Console(width=150)
    with console.capture() as text:
        console.print(show_audit(audit, {}))
    (line,) = [line for line in text.get().splitlines() if "below the floor" in line]
    assert line.split("  ")[-1].strip() == "gpu[01-02]"
    metric = 'hostwright_aged{host="gpu02",kind="below the floor",product="container-toolkit",version="1.17.8-1"} 1.0'
    assert metric in render_prometheus(audit)


def test_a_plan_says_it_of_the_stack(target: TargetHost) -> None:
    facts = Facts({probe: Answer(1, "") for probe in target.desired.probes()})
    planned = plan_host(target.desired, facts, AT)
    assert "driver 470.182.03: support for 470 ended in September 2024" in planned.aged
    assert planned.to_json()["aged"] == list(planned.aged)
    assert not set(planned.aged) & set(planned.notes)
