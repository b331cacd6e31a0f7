"""Tests that cards are judged on every host, whichever role of a site installed their driver."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.judging.audited import audit_probes, rules_of
from hostwright.audit.judging.context import AuditContext
from hostwright.audit.judging.judging import judge
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.model import Answer, Change, Facts, Step
from hostwright.prove.host import proofs_of
from hostwright.resources import DPKG
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES, HOLDERS

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
REPORTS = Path(__file__).parents[2] / "fixtures/nvidia-smi"
NEEDS_RESET = Answer(0, (REPORTS / "h100-535.183.01-reset.xml").read_text())
ON_BUS = Answer(0, "0x10de 0x030200 0x2330\n")
ROLE = '''
from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import Debs, Resource
from hostwright.roles import RoleContext, role


@dataclass(frozen=True, slots=True)
class GpuDriver:
    """Variables of the role."""

    version: str = "550.163.01-2"


@role(needs=["base"]{provides})
def {name}(v: GpuDriver, ctx: RoleContext) -> Iterator[Resource]:
    """Debian's own driver."""
    yield Debs(("nvidia-driver",))
'''
PROVIDES = ', provides=["driver"]'


def site(tmp_path: Path, name: str, provides: str, *roles: str) -> Path:
    """The inventory of a site with a driver role of its own, whose only host has these roles."""
    for folder in ("inventory", f"roles/{name}"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tasks.py").touch()
    (tmp_path / f"roles/{name}/__init__.py").write_text(ROLE.format(name=name, provides=provides))
    stack = "ours" if name == "driver" else "tensorflow-2.9"  # its section `driver` belongs to the standard role
    (tmp_path / "inventory/stacks").mkdir()
    (tmp_path / "inventory/stacks/ours.yml").write_text(
        'description: Ours.\ndistributions: {debian: ["13"]}\nroles: [base]\nartifacts: {}\n'
    )
    hosts = {"all": {"hosts": {"gpu01": {"hostwright_roles": list(roles), "hostwright_stack": stack}}}}
    (tmp_path / "inventory/hosts.yml").write_text(json.dumps(hosts))
    return tmp_path / "inventory"


def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *roles: str, name: str = "gpudriver") -> TargetHost:
    folder = site(tmp_path, name, PROVIDES, *roles)
    monkeypatch.chdir(tmp_path)
    return Fleet.load(folder).targets("gpu01")[0]


@pytest.fixture(params=["gpudriver", "driver", "none"])
def host(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TargetHost:
    """A host whose driver comes from a site's role (with another name or the standard role's), or from no role."""
    if request.param == "none":
        return target(tmp_path, monkeypatch, "base")
    return target(tmp_path, monkeypatch, "base", request.param, name=request.param)


def audit(host: TargetHost, **answers: Any) -> HostAudit:
    facts = {**dict.fromkeys(audit_probes(host), Answer(1, "")), PCI: ON_BUS, NVIDIA_SMI: NEEDS_RESET}
    return judge(host, Facts(facts | answers), AT)


def test_a_card_that_needs_a_reset_is_found(host: TargetHost) -> None:
    found = audit(host)
    assert "gpu-needs-reset" in {finding.rule for finding in found.findings}
    assert next(layer.status for layer in found.layers if layer.name == "gpu") == "failing"
    assert len(found.gpus) == 1


def test_its_users_are_known(host: TargetHost) -> None:
    assert set(BUSY_PROBES) <= set(host.desired.probes())
    facts = Facts({**dict.fromkeys(host.desired.probes(), Answer(1, "")), HOLDERS: Answer(0, "4711 - python3\n")})
    assert host.occupancy.users(facts) == ("python3 (4711)",)


def test_no_text_speaks_of_a_role_that_the_host_does_not_have(host: TargetHost) -> None:
    found = audit(host)
    texts = [*(one.reason for one in found.not_checked), *(line for one in found.findings for line in one.evidence)]
    assert [text for text in texts if "role driver" in text] == []
    names = {role.name for role in host.roles}
    layers = {getattr(treatment, "layer", "") for treatment in rules_of(host).treatments.values()}
    assert layers - names <= {""}


def test_cards_that_no_driver_drives_are_nobodys_fault_where_none_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = target(tmp_path, monkeypatch, "base")
    facts = {**dict.fromkeys(audit_probes(host), Answer(1, "")), PCI: ON_BUS, NVIDIA_SMI: Answer(127, "")}
    found = judge(host, Facts(facts), AT)
    assert [one for one in (*found.findings, *found.not_checked) if one.layer == "gpu"] == []


def test_an_nvidia_smi_that_fails_is_found_beside_packages_of_any_driver(host: TargetHost) -> None:
    row = "nvidia-driver:amd64\t550.163.01-2\tii \tamd64\tnvidia-driver\n"
    failed = Answer(255, "Failed to initialize NVML: Unknown Error\n")
    facts = {**dict.fromkeys(audit_probes(host), Answer(1, "")), PCI: ON_BUS, NVIDIA_SMI: failed, DPKG: Answer(0, row)}
    assert "nvidia-smi-failed" in {finding.rule for finding in judge(host, Facts(facts), AT).findings}


def test_cards_that_cannot_be_read_are_told_where_a_role_brings_their_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = target(tmp_path, monkeypatch, "base", "gpudriver")
    facts = {**dict.fromkeys(audit_probes(host), Answer(1, "")), PCI: ON_BUS, NVIDIA_SMI: Answer(127, "")}
    found = judge(host, Facts(facts), AT)
    assert ("gpu", "driver of cards") in {(one.layer, one.check) for one in found.not_checked}


@pytest.mark.parametrize(("roles", "found"), [(("base",), "gpus-fewer"), (("base", "gpudriver"), "no-gpu")])
def test_fewer_cards_than_the_command_line_says_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roles: tuple[str, ...], found: str
) -> None:
    folder = site(tmp_path, "gpudriver", PROVIDES, *roles)
    monkeypatch.chdir(tmp_path)
    host = Fleet.load(folder, Request(var=("hostwright_gpus=2",))).targets("gpu01")[0]
    one, none = ({PCI: Answer(0, text)} for text in ("0x10de 0x030200 0x2330\n", "0x8086 0x020000 0x1533\n"))
    asked = {**dict.fromkeys(audit_probes(host), Answer(1, "")), NVIDIA_SMI: NEEDS_RESET}
    assert "gpus-fewer" in {finding.rule for finding in judge(host, Facts(asked | one), AT).findings}
    assert found in {finding.rule for finding in judge(host, Facts(asked | none), AT).findings}


def test_a_role_that_needs_the_driver_takes_the_one_that_provides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = target(tmp_path, monkeypatch, "base", "gpudriver", "container")
    needs = {role.name: role.needs for role in host.desired.roles}
    assert needs["container"] == ("base", "gpudriver")
    context = AuditContext(
        host.desired, {}, Facts({}), {"gpudriver": (Change("x", "1", "2", (Step("x", "true"),)),)}, AT
    )
    assert context.differs("driver")
    assert not replace(context, changes={}).differs("driver")


def test_its_cards_are_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = target(tmp_path, monkeypatch, "base", "gpudriver")
    found = [proof.key for proof in proofs_of(host) if proof.layer != "base"]
    assert found == ["gpudriver.placement", "gpudriver.diagnostics"]


def test_without_provides_the_need_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site(tmp_path, "gpudriver", "", "base", "gpudriver", "container")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="the role container needs the role driver, which is not in the list"):
        Fleet.load(folder).targets("gpu01")
