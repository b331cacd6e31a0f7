"""``invoke hosts`` on other people's inventories: a listing, with what keeps hosts from being provisioned."""

import json
from pathlib import Path

import pytest

from hostwright.cli.arguments import Selection
from hostwright.cli.verbs.inventory import hosts
from hostwright.common.errors import InputError, InputErrors
from hostwright.fleet import Fleet

OTHERS = """
all:
  vars:
    container_manager: containerd
    environment: production
    base_dir: /srv
    container: {image: nginx}
  hosts:
    web1: {stack: web}
    win1: {ansible_connection: winrm}
    here: {ansible_connection: local}
    gpu01: {stack: {name: swarm}}
    gpu02: {stack: web, hostwright_stack: tensorflow-2.9}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory"
    path.mkdir()
    (path / "hosts.yml").write_text(OTHERS)
    return path


def test_every_host_is_listed_and_what_cannot_be_used_is_said(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hosts(Selection("all", str(inventory))) == 0
    out, err = capsys.readouterr()
    err = " ".join(err.split())
    assert out.startswith("5 hosts: ")
    assert "stack: there is no stack 'web'" in err
    assert "name ours with hostwright_stack" in err
    assert "found 'winrm'" in err
    for name in ("container_manager", "environment", "base_dir", "container"):
        assert err.count(f"hosts.yml:{OTHERS[: OTHERS.index(f'    {name}:')].count(chr(10)) + 1}:5: ") == 1, name
    assert "add 'base_dir' to hostwright_own_variables" in err


def test_this_machine_is_listed_as_such(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hosts(Selection("here,gpu02", str(inventory))) == 0
    assert "  here  this machine  " in capsys.readouterr().out
    assert hosts(Selection("here,gpu02", str(inventory)), as_json=True) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["host"]: row["connection"] for row in rows} == {"here": "local", "gpu02": "ssh"}


def test_two_names_of_this_machine_are_listed_and_not_worked_on_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in inventories in which network devices, or clouds, are reached by programs that run here."""
    (tmp_path / "hosts.ini").write_text("[dev]\ndev1\n[staging]\nstaging1\n[all:vars]\nansible_connection=local\n")
    assert hosts(Selection("all", str(tmp_path))) == 0
    assert capsys.readouterr().out.startswith("2 hosts: ")
    fleet = Fleet.load(tmp_path)
    assert [member.name for member in fleet.members("staging")] == ["staging1"]
    with pytest.raises(InputError, match="dev1, staging1 have ansible_connection: local, so each of them is this mach"):
        fleet.members("all")


def test_the_listing_as_json_is_a_document_alone(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hosts(Selection("all", str(inventory)), as_json=True) == 0
    rows = json.loads(capsys.readouterr().out)
    stacks = {row["host"]: row["stack"] for row in rows}
    assert list(stacks) == ["web1", "win1", "here", "gpu01", "gpu02"]
    assert (stacks["web1"], stacks["gpu02"]) == ("web", "tensorflow-2.9")
    assert stacks["gpu01"] == Fleet.load(inventory).default_stack


def test_strict_refuses_what_a_listing_notes(inventory: Path) -> None:
    with pytest.raises(InputErrors, match="winrm"):
        hosts(Selection("all", str(inventory)), strict=True)
    with pytest.raises(InputErrors, match="'container_manager' is not read"):
        hosts(Selection("gpu02", str(inventory)), strict=True)


def test_other_peoples_variables_keep_no_host_from_being_provisioned(inventory: Path) -> None:
    fleet = Fleet.load(inventory)
    members = fleet.members("gpu01,gpu02")
    assert [member.stack.name for member in members] == [fleet.default_stack, "tensorflow-2.9"]
    assert any("'container_manager' is not read: it is no variable of the role container" in n for n in members.notes)
    with pytest.raises(InputErrors, match="there is no stack 'web'"):
        fleet.members("web1")
