"""This machine as a host of an inventory: the verbs that read work on it, over real processes, and change nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hostwright.audit.auditor import AuditOptions
from hostwright.common.errors import BecomeError
from hostwright.common.places import state_root
from hostwright.fleet import Fleet, Targets
from hostwright.plan.host.jobs import JOBS_DIR, WORK_DIRS
from hostwright.plan.host.locks import STATE_DIR


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Targets:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    variables = {"ansible_connection": "local", "stack": "tensorflow-2.9"}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"me": variables}}}))
    return Fleet.load(tmp_path / "hosts.yml").targets("me")


def fleet(targets: Targets, folder: Path) -> Fleet:
    assert len(targets) == 1
    return Fleet.load(folder / "hosts.yml")


def kept() -> list[str]:
    """What Hostwright has on this machine as a host, without the jobs of proofs that another test runs meanwhile."""
    folders = (each for each in os.walk(STATE_DIR) if not each[0].startswith((JOBS_DIR, *WORK_DIRS)))
    return sorted(f"{folder}/{name}" for folder, _, names in folders for name in names)


def test_it_is_planned_like_any_other(targets: Targets, tmp_path: Path) -> None:
    before = kept()
    results = fleet(targets, tmp_path).plan(targets)
    if results.errors:  # who runs the tests may not become root
        assert isinstance(results.errors[0], BecomeError)
    else:
        (planned,) = results.values
        assert {role.role for role in planned.plan.roles} >= {"driver", "cuda"}
        assert not planned.plan.empty
    assert kept() == before


def test_it_is_audited_and_examined_without_sudo(targets: Targets, tmp_path: Path) -> None:
    before = kept()
    audit = fleet(targets, tmp_path).audit(targets, AuditOptions(sudo=False))
    (host,) = audit.hosts
    assert host.status != "unread", host.sentence
    assert kept() == before


def test_it_has_no_host_key_to_trust(targets: Targets, tmp_path: Path) -> None:
    for results in (fleet(targets, tmp_path).trust(targets), fleet(targets, tmp_path).forget(targets)):
        (error,) = results.errors
        assert error.sentence == "the host is this machine (ansible_connection: local), which has no recorded host key"
    assert not (state_root() / "runs").exists()
