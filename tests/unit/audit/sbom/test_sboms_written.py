"""Tests of ``invoke audit --cyclonedx DIR``: a private file for each readable host; an error of one host affects no
other.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostwright.audit.auditor import AuditOptions, Auditor
from hostwright.audit.fleetaudit import FleetAudit
from hostwright.audit.sbom import cyclonedx
from hostwright.cli.tasks.look import audit_fleet
from hostwright.cli.views.reports import Outputs
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet, Listener
from hostwright.plan.model import Answer, Facts
from hostwright.resources.packages.dpkg import DPKG
from tests.places import PROJECT
from tests.unit.support.sboms import AT, answers, debs

HOSTS = """\
all:
  vars: {ansible_password: correct-horse, stack: tensorflow-2.9}
  hosts: {gpu01: {ansible_host: 192.0.2.11}, gpu02: {ansible_host: 192.0.2.12}, gpu03: {ansible_host: 192.0.2.13}}
"""

Kept = Callable[..., Auditor]


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / "hosts.yml").write_text(HOSTS)
    return folder


@pytest.fixture
def kept(inventory: Path) -> Kept:
    """An auditor of hosts that were read once; ``warned`` has its warnings."""

    def make(warned: list[str] | None = None, names: tuple[str, ...] = ("gpu01", "gpu02"), **rows: str) -> Auditor:
        fleet = Fleet.load(inventory)
        hosts = fleet.targets("all")
        view = Listener(lambda _: None)
        view.warn = (warned if warned is not None else []).append  # type: ignore[method-assign]
        auditor = fleet.auditor(hosts, AuditOptions(offline=True), view=view)
        for host in hosts:
            if host.name in names:
                found = answers(host) | {DPKG: Answer(0, debs(host, **rows))}
                auditor.memory.keep(host.name, Facts(found), AT)
        return auditor

    return make


def offline(inventory: Path, folder: Path) -> int:
    selection = Request("all", inventory=(str(inventory),))
    return audit_fleet(replace(selection, json=True), cyclonedx=str(folder), offline=True)


def test_each_host_that_was_read_has_a_file_for_the_operator_alone(kept: Kept, inventory: Path, tmp_path: Path, capsys):
    kept()
    folder = tmp_path / "bills"
    assert offline(inventory, folder) == 1, "gpu03 was never read"
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        "gpu01.cdx.json": 0o600, "gpu02.cdx.json": 0o600,
    }  # fmt: skip
    assert folder.stat().st_mode & 0o777 == 0o700
    first = (folder / "gpu01.cdx.json").read_text()
    assert json.loads(first)["metadata"]["component"]["name"] == "gpu01"
    offline(inventory, folder)
    assert (folder / "gpu01.cdx.json").read_text() == first
    assert json.loads(capsys.readouterr().out.splitlines()[0])["schema"], "standard output is the audit's"


def test_a_secret_of_the_inventory_that_a_host_says_is_masked(kept: Kept):
    auditor = kept(curl="correct-horse-1")
    texts = dict(auditor.sboms(auditor.audit().audit))
    assert set(texts) == {"gpu01", "gpu02"}
    assert not [text for text in texts.values() if "correct-horse" in text or "192.0.2." in text]


def test_a_host_whose_bill_cannot_be_made_is_named_and_the_others_have_theirs(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
):
    whole = cyclonedx.render_cyclonedx

    def fails(sbom: Any) -> str:
        if sbom.host == "gpu01":
            raise RecursionError("deep")
        return whole(sbom)

    monkeypatch.setattr(cyclonedx, "render_cyclonedx", fails)
    warned: list[str] = []
    auditor = kept(warned)
    assert [host for host, _ in auditor.sboms(auditor.audit().audit)] == ["gpu02"]
    assert [sentence.partition(":")[0] for sentence in warned] == ["gpu01"]
    assert "no SBOM is written for this host" in warned[0]


def test_an_audit_whose_facts_could_not_be_stored_takes_no_older_ones(kept: Kept):
    warned: list[str] = []
    auditor = kept(warned, ("gpu01",))
    told = auditor.audit().audit
    newer = FleetAudit(
        told.at, told.inventory, tuple(replace(host, at="2026-11-22T00:00:00+00:00") for host in told.hosts)
    )
    assert list(auditor.sboms(newer)) == []
    assert "the facts of this host could not be stored" in warned[0]


def test_the_exit_status_says_that_a_bill_is_missing(kept: Kept, inventory: Path, tmp_path: Path, monkeypatch):
    kept(names=("gpu01", "gpu02", "gpu03"))
    folder = tmp_path / "bills"
    right = offline(inventory, folder)
    monkeypatch.setattr(cyclonedx, "render_cyclonedx", lambda sbom: 1 / 0)
    assert offline(inventory, folder) == 1
    assert right != 1, "everything was written"


@pytest.mark.parametrize(
    "name, part", [("-", "name a directory"), ("/nowhere/at/all", "cannot be created"), ("file", "directory")]
)
def test_what_is_no_directory_is_refused_before_any_host_is_asked(name: str, part: str, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    place = name if name.startswith(("-", "/")) else str(tmp_path / name)
    with pytest.raises(InputError, match=part):
        Outputs(cyclonedx=place).check()
    assert (tmp_path / "file").read_text() == "x"


def test_an_audit_without_it_loads_no_library_for_it():
    program = (
        "import sys\nimport hostwright.cli.views.audits, hostwright.cli.views.reports, hostwright.fleet\n"
        "import hostwright.audit.auditor, hostwright.standard.roles.driver, hostwright.standard.roles.tensorflow\n"
        "print([name for name in ('cyclonedx', 'packageurl', 'license_expression') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
