"""``hostwright init``: a site that works at once, and existing files stay unchanged."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from hostwright import __version__
from hostwright.cli.tasks.begin import init
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.roles.site import Site


def files_of(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    assert init(Request(), str(tmp_path / "our site")) == 0
    return tmp_path / "our site"


def test_a_site_has_a_place_for_everything(site: Path) -> None:
    assert {name for name in files_of(site) if not name.endswith("README.md")} == {
        *(f".schemas/{name}.json" for name in ("inventory", "settings", "stack", "variables", "workspaces")),
        ".ci/run",
        ".gitignore",
        ".mypy.ini",
        ".ruff.toml",
        "inventory/group_vars/all.yml",
        "inventory/hosts.yml",
        "requirements.txt",
        "tasks.py",
    }
    for folder in ("inventory/stacks", "roles", "templates", "tests/layers"):
        assert (site / folder).is_dir()
    assert os.access(site / ".ci/run", os.X_OK)
    assert len(ast.parse((site / "tasks.py").read_text()).body) == 4  # its docstring, two imports and its result


def test_the_version_is_pinned(site: Path) -> None:
    lines = (site / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [f"hostwright=={__version__}"]


def test_hosts_are_read_once_they_are_named(site: Path) -> None:
    with pytest.raises(InputError, match=r"no hosts yet; add them to .*our site/inventory/hosts\.yml"):
        Fleet.load(site=Site(site)).targets("all")
    hosts = site / "inventory/hosts.yml"
    commented = hosts.read_text().partition("addresses in:\n#\n")[2]
    hosts.write_text("".join(line.removeprefix("# ") for line in commented.splitlines(keepends=True)))
    found = Fleet.load(site=Site(site)).targets("all")
    assert len(found) == 18
    assert {one.stack.name for one in found} == {"tensorflow-2.9"}


def test_what_to_do_next_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init(Request(), str(tmp_path / "our site"))
    said = capsys.readouterr().out
    assert f"cd '{tmp_path}/our site'" in said
    for step in ("inventory/hosts.yml", "hostwright mirror", "hostwright plan"):
        assert step in said


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("mine")
    with pytest.raises(InputError, match=r"tasks\.py already exist; nothing was written"):
        init(Request(), str(tmp_path))
    assert files_of(tmp_path) == {"tasks.py": "mine"}


def test_a_directory_with_other_files_becomes_a_site(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text("mine")
    init(Request(), str(tmp_path))
    assert files_of(tmp_path)["LICENSE"] == "mine"
    assert (tmp_path / "tasks.py").exists()


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="the site cannot be written"):
        init(Request(), str(tmp_path / "file" / "site"))


def chosen(site: Path) -> list[str]:
    """Return the lines that name the stack of all hosts."""
    return [line for line in (site / "inventory/group_vars/all.yml").read_text().splitlines() if "stack:" in line][:1]


def test_a_site_has_the_stack_that_was_named(tmp_path: Path) -> None:
    assert init(Request(), str(tmp_path / "ours"), "tensorflow-2.12") == 0
    assert chosen(tmp_path / "ours") == ["stack: tensorflow-2.12 # a file of ../stacks, or a standard stack"]
    (tmp_path / "ours/inventory/hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    (target,) = Fleet.load(site=Site(tmp_path / "ours")).targets("all")
    assert target.stack.name == "tensorflow-2.12"


def test_a_stack_that_there_is_not_makes_no_site(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown stack 'tensorflow-2\.99'; did you mean"):
        init(Request(), str(tmp_path / "ours"), "tensorflow-2.99")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("", "# stack: tensorflow-2.9"),
        ("tensorflow-2.9\n", "# stack: tensorflow-2.9"),
        ("tensorflow-2.10\n", "stack: tensorflow-2.10"),
    ],
)
def test_a_terminal_is_asked_for_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, line: str
) -> None:
    monkeypatch.setattr("hostwright.cli.sitefiles.can_ask", lambda: True)
    monkeypatch.setattr("hostwright.cli.sitefiles.answer_to", lambda question: answer)
    assert init(Request(), str(tmp_path / "ours")) == 0
    assert chosen(tmp_path / "ours")[0].startswith(line)
    assert "  hgx-b200                      PyTorch 2.14.1 (CUDA 13.0 wheels) for HGX B200" in capsys.readouterr().err
