"""``hostwright stacks``: every stack with its versions and trials, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from hostwright.cli.tasks.begin import init
from hostwright.cli.tasks.site import stacks
from hostwright.cli.views.stacks import stack_view
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.roles.site import Site
from hostwright.plan.stacks.listing import ListedStack, list_stacks
from tests.places import INVENTORY

OURS = "extends: tensorflow-2.9\ndescription: ours\ndistributions: {ubuntu: ['20.04'], debian: []}\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a new site, as the working directory."""
    init(Request(), str(tmp_path / "site"))
    capsys.readouterr()
    monkeypatch.setenv("HOSTWRIGHT_SITE", "")
    monkeypatch.chdir(tmp_path / "site")
    return tmp_path / "site"


def text_of(listed: ListedStack, width: int = 80) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(stack_view(listed))
    lines = capture.get().splitlines()
    assert all(len(line) <= width for line in lines)
    return "\n".join(line.rstrip() for line in lines)


def standard(name: str) -> ListedStack:
    (found,) = (one for one in Fleet.load(INVENTORY).stacks() if one.name == name)
    return found


def test_a_stack_at_80_columns() -> None:
    text = text_of(standard("tensorflow-2.9"))
    assert text.startswith("tensorflow-2.9\n  what   TensorFlow 2.9.0, CUDA 11.2.2,")
    words = " ".join(text.split())
    assert "pins driver 470.182.03, cuda 11.2.2, nvcc V11.2.152, cudnn 8.1.0.77, tensorflow 2.9.0" in words
    assert "for ubuntu 20.04, ubuntu 22.04, debian 11" in words
    assert "roles base, driver, cuda, cudnn, environment, tensorflow, container" in words
    assert "stand-ins" not in words.partition("on lab hosts")[0]
    assert "tried ubuntu 20.04, ubuntu 22.04: only planned, from made-up facts; never on a host" in words
    assert "tried debian 11: audit, plan, provision, remove, verify on lab hosts (" in words
    assert "stand-ins for container-toolkit-key, cuda-pin, cuda-repository, cudnn, driver, fabric-manager" in words


def test_json_is_one_document_with_every_role_on_every_release(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stacks(Request(json=True)) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["stacks"]}
    bionic = found["tensorflow-2.9-ubuntu18.04"]
    assert (bionic["standard"], bionic["problem"], bionic["stand_ins"]) == (True, "", [])
    assert bionic["distributions"] == {"ubuntu": ["18.04"]}
    assert bionic["versions"]["cudnn"] == "8.1.0.77"
    assert [(cell["release"], cell["role"]) for cell in bionic["matrix"]] == [
        ("18.04", name) for name in bionic["roles"]
    ]
    assert {cell["state"] for cell in bionic["matrix"]} == {"planned"}
    (cell,) = (
        cell for cell in found["tensorflow-2.9"]["matrix"] if (cell["release"], cell["role"]) == ("11", "tensorflow")
    )
    assert cell["state"] == "tried"
    assert cell["trials"][0]["verbs"] == ["audit", "plan", "provision", "remove", "verify"]
    assert set(cell["trials"][0]) == {"host", "verbs", "stand_ins", "tests", "date"}


def test_new_site_has_the_standard_stacks_and_its_own_is_untried(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "inventory/stacks/ours.yml").write_text(OURS)
    assert stacks(Request()) == 0
    out = capsys.readouterr().out
    assert "tensorflow-2.12\n" in out
    assert f"{site}/inventory/stacks/ours.yml (of this site)" in "".join(out.splitlines())
    (ours,) = (one for one in list_stacks(Fleet.load(site=Site(site))) if one.name == "ours")
    assert "\n  tried  ubuntu 20.04: not tried" in text_of(ours)


def test_sites_stack_hides_the_standard_ones_records(
    site: Path,
) -> None:
    (site / "inventory/stacks/tensorflow-2.9.3.yml").write_text(OURS)
    (mine,) = (one for one in list_stacks(Fleet.load(site=Site(site))) if one.name == "tensorflow-2.9.3")
    assert (mine.file, mine.standard) == (site / "inventory/stacks/tensorflow-2.9.3.yml", False)
    assert {cell.state for cell in mine.matrix} == {"not tried"}


def test_roles_of_which_other_things_are_known_have_lines_of_their_own(site: Path) -> None:
    (site / "inventory/stacks/ours.yml").write_text(OURS)
    records = [
        {"stack": "ours", "versions": standard("tensorflow-2.9").stack.versions(), "distribution": "ubuntu",
         "release": "20.04", "roles": ["base", "container"], "verbs": ["verify"], "date": "2026-01-02"}
    ]  # fmt: skip
    (site / "inventory/stacks/tried.json").write_text(json.dumps(records))
    (ours,) = (one for one in list_stacks(Fleet.load(site=Site(site))) if one.name == "ours")
    tail = text_of(ours).partition("\n  tried  ")[2]
    assert tail.split("\n")[:3] == [
        "ubuntu 20.04:",
        "           base, container: verify on lab hosts (recorded 2026-01-02)",
        "           driver, cuda, cudnn, environment, tensorflow: not tried",
    ]


def test_a_stack_that_cannot_be_used_is_named_and_hides_no_other(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "inventory/stacks/ours.yml").write_text("extends: tensorflow-2.9\ndriver: {version: 450.51.06}\n")
    assert stacks(Request()) == 2
    out = capsys.readouterr().out
    assert "problem" in out
    assert "tensorflow-2.12\n" in out
    assert stacks(Request(json=True)) == 2
    (ours,) = (one for one in json.loads(capsys.readouterr().out)["stacks"] if one["name"] == "ours")
    assert "stack ours" in ours["problem"]
    assert "versions" not in ours


def test_control_characters_in_a_stack_do_not_reach_the_terminal(site: Path) -> None:
    (site / "inventory/stacks/ours.yml").write_text(OURS.replace("ours", '"a\\e[31mb"'))
    (ours,) = (one for one in list_stacks(Fleet.load(site=Site(site))) if one.name == "ours")
    assert "\x1b" not in text_of(ours)
