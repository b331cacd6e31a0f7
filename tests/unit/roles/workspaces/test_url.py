"""Access to a workspace: through a tunnel, and behind the proxy if the host has it."""

from __future__ import annotations

import io
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.cli.asking import Declined
from hostwright.common.errors import AS_DESIRED, HostError, InputError, Unreachable
from hostwright.common.request import Request
from hostwright.fleet import Fleet, TargetHost
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.verbs import changing, hostkeys, queries
from hostwright.standard.roles.workspaces.verbs.queries import browser_lines, declared_of, url_lines
from tests.unit.roles.workspaces.spaces import KEY, space
from tests.unit.support.terminals import Terminal

HOSTS = """
all:
  hosts:
    gpu01: {{ansible_host: 192.0.2.1, hostwright_roles: [base, driver, container, {roles}]{more}}}
  vars:
    workspaces_users: {{alice: {{uid: 2001}}}}
    workspaces_containers:
      alice-lab: {{user: alice, kind: jupyter, port: 21001}}
      alice-board: {{user: alice, kind: tensorboard, port: 21002}}
      alice-run: {{user: alice, kind: batch, command: ["true"]}}
"""
BOX = f"""
all:
  vars: {{workspaces_users: {{alice: {{uid: 2001, keys: [{KEY}]}}}}}}
  hosts:
    gpu01:
      hostwright_roles: [base, driver, container, workspaces]
      workspaces_containers:
        alice-box: {{user: alice, kind: ssh, port: 21003}}
        alice-lab: {{user: alice, kind: jupyter, port: 21001}}
"""


def target_with(folder: Path, more: str = "", roles: str = "workspaces, proxy") -> TargetHost:
    (folder / "hosts.yml").write_text(HOSTS.format(more=more, roles=roles))
    return Fleet.load(folder).targets("gpu01", ["workspaces"])[0]


def lines(target: TargetHost, name: str, token: str = "0a1b") -> list[str]:  # noqa: S107 - a made-up one
    space: Workspace = next(space for space in declared_of(target) if space.name == name)
    return [*url_lines(target, space, token), *browser_lines(target, space, token)]


@pytest.mark.parametrize(
    "more, place",
    [
        ("", "192.0.2.1"),
        (", proxy_names: [gpu01.example.org]", "gpu01.example.org"),
        (", proxy_listen: ['10.0.0.5:8443']", "192.0.2.1:8443"),
        (", proxy_listen: ['[::]:8443', '443']", "192.0.2.1:8443"),
    ],
)
def test_behind_the_proxy_a_page_has_an_address_of_its_own(tmp_path: Path, more: str, place: str) -> None:
    tunnel, through, address = lines(target_with(tmp_path, more), "alice-lab")
    assert tunnel.startswith("ssh -N -L 21001:127.0.0.1:21001 ")
    assert through == "http://127.0.0.1:21001/alice/alice-lab/?token=0a1b"
    assert address == f"https://{place}/alice/alice-lab/?token=0a1b"


def test_tensorboards_token_is_the_proxys_and_not_the_tunnels(tmp_path: Path) -> None:
    _, through, address = lines(target_with(tmp_path), "alice-board")
    assert through == "http://127.0.0.1:21002/alice/alice-board/"
    assert address == "https://192.0.2.1/alice/alice-board/?token=0a1b"


def test_an_unasked_token_is_not_shown(tmp_path: Path) -> None:
    assert not any("token" in line for line in lines(target_with(tmp_path), "alice-lab", ""))


def test_without_a_proxy_or_a_page_there_is_no_such_address(tmp_path: Path) -> None:
    assert len(lines(target_with(tmp_path, roles="workspaces"), "alice-lab")) == 2
    assert len(lines(target_with(tmp_path), "alice-run")) == 1


@pytest.mark.parametrize("text", ["", "a" * 47, "\x1b]52;c;cm0gLXJm\x07" + "a" * 40, "a" * 48 + "\nhttps://elsewhere"])
def test_a_token_that_its_user_wrote_is_not_printed(text: str) -> None:
    """The user owns the file and can change it with an account of the host."""

    shell: Any = SimpleNamespace(host="gpu01", run=lambda *_, **_limits: SimpleNamespace(stdout=text.encode()))
    with pytest.raises(HostError, match="gpu01: the access token of workspace x is not valid"):
        queries._token(shell, space(WorkspaceEntry("bob", "jupyter")))


class Hosts:
    """Stand-in for connections: each host has these texts in files that the login user may read."""

    def __init__(self, files: dict[str, str] | None):
        self.files = files

    def __call__(self, _password: object = None) -> Hosts:
        return self

    def connect(self, target: TargetHost) -> Hosts:
        if self.files is None:
            raise Unreachable(target.name, "connection refused")
        return self

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *_: object) -> None: ...

    def as_login_user(self, script: str, **_limits: float) -> Any:
        assert self.files is not None
        return SimpleNamespace(stdout=self.files.get(script, "").encode())


KEYS = {"cat -- /var/lib/hostwright/workspaces/alice-box/host_key.pub": f"{KEY}\n"}


@pytest.fixture
def boxed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {ansible_host: 192.0.2.1}}}\n")
    (tmp_path / "workspaces.yml").write_text(BOX)
    monkeypatch.setattr(hostkeys, "Connections", Hosts(KEYS))
    monkeypatch.setattr(changing, "provision_hosts", lambda *_words, **_options: AS_DESIRED)
    return Request("gpu01", inventory=(str(tmp_path),))


def told_key(tmp_path: Path) -> str:
    """Return the fingerprint in OpenSSH's notation."""
    (tmp_path / "key.pub").write_text(KEY)
    done = subprocess.run(("ssh-keygen", "-lf", str(tmp_path / "key.pub")), capture_output=True, text=True, check=True)
    return f"ssh-ed25519 {done.stdout.split()[1]}"


def test_a_box_is_told_with_its_key_and_what_to_do_where_ssh_knows_another(
    boxed: Request, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """che-code#560: users got used to deleting known_hosts."""
    assert queries.show_url(replace(boxed, json=True), "alice-box", token=False) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == [
        "ssh -J alice@192.0.2.1 -p 21003 alice@127.0.0.1",
        f"host key of alice-box: {told_key(tmp_path)}; if ssh warns that the key has changed and shows this key, run:",
        "ssh-keygen -R '[127.0.0.1]:21003'",
    ]


@pytest.mark.parametrize("files", [None, {}])
def test_a_box_is_told_also_while_its_key_cannot_be_read(
    boxed: Request, monkeypatch: pytest.MonkeyPatch, files: dict[str, str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hostkeys, "Connections", Hosts(files))
    assert queries.show_url(replace(boxed, json=False), "alice-box", token=False) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["ssh -J alice@192.0.2.1 -p 21003 alice@127.0.0.1"]
    said = "gpu01: connection refused" if files is None else "has no SSH host key yet"
    assert said in " ".join(printed.err.split())


def test_up_and_down_of_a_box_say_what_is_of_its_key(
    boxed: Request, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def up(name: str) -> str:
        changing.change(boxed, name, lambda before: {**(before or {}), "cpus": 2})
        return " ".join(capsys.readouterr().out.split())

    assert f"host key of alice-box: {told_key(tmp_path)}; if ssh warns" in up("alice-box")
    assert "key" not in up("alice-lab").replace(KEY, "")
    for name, told in (("alice-box", True), ("alice-lab", False)):
        changing.change(replace(boxed, yes=True), name, None)
        said = " ".join(capsys.readouterr().out.split())
        assert (f"{name}: its SSH host key was removed, too; a new box of this name gets another key" in said) is told


def test_down_asks_before_anything_is_written(boxed: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agreed: list[Request] = []

    def provision(change: Request) -> int:
        agreed.append(change)
        return AS_DESIRED

    monkeypatch.setattr(changing, "provision_hosts", provision)
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    with pytest.raises(InputError, match=r"`workspace\.down` removes alice-box from gpu01; pass --yes"):
        changing.change(boxed, "alice-box", None)
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    with pytest.raises(Declined, match="nothing was changed"):
        changing.change(boxed, "alice-box", None)
    assert (tmp_path / "workspaces.yml").read_text() == BOX
    assert agreed == []
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert changing.change(boxed, "alice-box", None) == AS_DESIRED
    assert [change.yes for change in agreed] == [True], "what was agreed to is not asked once more"
    assert "alice-box" not in (tmp_path / "workspaces.yml").read_text()


def test_down_asks_nothing_where_only_the_file_is_written(boxed: Request, tmp_path: Path) -> None:
    assert changing.change(boxed, "alice-box", None, provision=False) == AS_DESIRED
    assert "alice-box" not in (tmp_path / "workspaces.yml").read_text()
