"""What lab tests try is written down: each verb that ended well, with its hosts' release, stack and roles."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from hostwright.stack.tried import Trial, read_trials
from lab.config import Lab
from lab.records import HostRecord, write_record
from tests.lab import recording

STACK = """\
extends: tensorflow-2.9
artifacts:
  driver: {file: a.run, urls: ["file:///a.run"], stand_in: true}
"""
PATCHED = "extends: lab\ndriver: {version: 470.256.02, fabric_manager: {version: 470.256.02-1}}\n"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The files of a lab with two hosts, of which one is of a release that no stack is for."""
    lab = Lab("rec", root=tmp_path)
    hosts = {"gpu01": "bullseye", "gpu02": "trixie"}
    for index, (name, distro) in enumerate(hosts.items(), 1):
        folder = lab.state / "hosts" / name
        folder.mkdir(parents=True)
        write_record(folder, HostRecord(name, index, "base", "key", {"distro": distro}))
    (lab.inventory.parent / "stacks").mkdir(parents=True)
    (lab.inventory.parent / "stacks/lab.yml").write_text(STACK)
    (lab.inventory.parent / "stacks/lab-driver.yml").write_text(PATCHED)
    variables = {"stack": "lab"}
    lab.inventory.write_text(yaml.safe_dump({"lab": {"hosts": dict.fromkeys(hosts), "vars": variables}}))
    monkeypatch.setenv(recording.VARIABLE, "1")
    monkeypatch.setattr(recording, "_recorded", [])
    monkeypatch.setattr(recording, "locked", lambda _: nullcontext())
    return lab


def noted(lab: Lab, *words: str, status: int = 0) -> list[Trial]:
    recording.note(lab, words, str(lab.inventory.parent), status)
    return recording._recorded


def test_a_verb_that_ended_well_is_a_record_of_the_standard_stack(lab: Lab) -> None:
    (one,) = noted(lab, "provision", "--hosts", "gpu01,gpu02")
    assert (one.stack, one.distribution, one.release, one.host) == ("tensorflow-2.9", "debian", "11", "lab")
    assert (one.verbs, one.stand_ins, one.tests) == (("provision",), ("driver",), ("tests/unit/lab/test_recording.py",))
    assert one.roles == ("base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container")
    assert one.date is not None


def test_roles_and_stack_of_the_command_line_count(lab: Lab) -> None:
    words = ("--hosts", "gpu01", "--roles", "cuda,cudnn", "--var", "stack=lab-driver", "--json")
    (one,) = noted(lab, "verify", *words)
    assert (one.stack, one.roles) == ("tensorflow-2.9-r470.256", ("cuda", "cudnn"))


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("provision", "--hosts", "gpu01"), 1),
        (("plan", "--hosts", "gpu01"), 2),
        (("audit", "--hosts", "gpu01"), 3),
        (("remove", "--hosts", "gpu01", "--check"), 0),
        (("mirror", "--stack", "lab"), 0),
        (("provision", "--hosts", "gone"), 0),
    ],
)
def test_failed_and_read_only_commands_are_not_recorded(lab: Lab, words: tuple[str, ...], status: int) -> None:
    assert noted(lab, *words, status=status) == []


def test_a_plan_that_differs_is_a_plan(lab: Lab) -> None:
    (one,) = noted(lab, "plan", "--hosts", "gpu01", status=3)
    assert one.state == "planned"


def test_nothing_is_noted_where_nobody_asks(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(recording.VARIABLE)
    assert noted(lab, "provision", "--hosts", "gpu01") == []


def test_records_are_written_at_the_end_where_all_tests_passed(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "FILE", tmp_path / "tried.json")
    noted(lab, "provision", "--hosts", "gpu01")
    recording.pytest_sessionfinish(1)
    assert not (tmp_path / "tried.json").exists()
    recording.pytest_sessionfinish(0)
    noted(lab, "verify", "--hosts", "gpu01")
    recording.pytest_sessionfinish(0)
    (one,) = read_trials(tmp_path / "tried.json")
    assert one.verbs == ("provision", "verify")
