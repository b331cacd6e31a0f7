"""``serve.down``: removals need confirmation before any file is written."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hostwright.cli.asking import Declined
from hostwright.common.errors import AS_DESIRED, InputError
from hostwright.common.request import Request
from hostwright.standard.roles.serving.verbs import changing
from tests.unit.support.terminals import Terminal

MODELS = """\
all:
  vars:
    hostwright_roles: [base, driver, container, workspaces, serving]
  hosts:
    gpu01:
      workspaces_containers:
        half: {user: nobody, kind: serving, image: "tensorflow/serving:2.9.0",
          versions: {1: "sha256:ONE", 2: "sha256:TWO"}, live: 1}
""".replace("ONE", "1" * 64).replace("TWO", "2" * 64)


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}\n")
    (tmp_path / "workspaces.yml").write_text(MODELS)
    return tmp_path


@pytest.fixture
def agreed(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Record the options of each provision without connecting to a host."""
    seen: list[Request] = []

    def provision(change: Request) -> int:
        seen.append(change)
        return AS_DESIRED

    monkeypatch.setattr(changing, "provision_hosts", provision)
    return seen


def down(inventory: Path, version: int = 0, *, provision: bool = True, yes: bool = False) -> int:
    return changing.down(Request(inventory=(str(inventory),), yes=yes), "half", version, provision=provision)


@pytest.mark.parametrize(("version", "what"), [(0, "half"), (2, "version 2 of half")])
def test_it_is_refused_where_nobody_can_be_asked(
    inventory: Path, agreed: list[Request], monkeypatch: pytest.MonkeyPatch, version: int, what: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    with pytest.raises(InputError, match=rf"`serve\.down` removes {what} from gpu01; pass --yes"):
        down(inventory, version)
    assert (inventory / "workspaces.yml").read_text() == MODELS
    assert down(inventory, version, yes=True) == AS_DESIRED
    assert [change.yes for change in agreed] == [True]


def test_a_terminal_is_asked_once(inventory: Path, agreed: list[Request], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", err := Terminal())
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    with pytest.raises(Declined, match="nothing was changed"):
        down(inventory)
    assert (inventory / "workspaces.yml").read_text() == MODELS
    assert "removes half from gpu01: requests for it will fail" in err.getvalue()
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert down(inventory) == AS_DESIRED
    assert [change.yes for change in agreed] == [True], "what was agreed to is not asked once more"
    assert "half" not in (inventory / "workspaces.yml").read_text()


def test_the_live_version_is_refused_before_anybody_is_asked(inventory: Path, agreed: list[Request]) -> None:
    with pytest.raises(InputError, match="version 1 of half is live"):
        down(inventory, 1)
    assert agreed == []


def test_where_only_the_file_is_written_nobody_is_asked(inventory: Path, agreed: list[Request]) -> None:
    assert down(inventory, 2, provision=False) == AS_DESIRED
    assert agreed == []
    assert "2" * 64 not in (inventory / "workspaces.yml").read_text()
