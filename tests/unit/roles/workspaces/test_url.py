"""How to reach a workspace: through a tunnel, and behind the proxy where the host has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.fleet import Fleet, Member
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.verbs.looking import browser_lines, declared_of, url_lines

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


def member_with(folder: Path, more: str = "", roles: str = "workspaces, proxy") -> Member:
    (folder / "hosts.yml").write_text(HOSTS.format(more=more, roles=roles))
    return Fleet.load(folder).members("gpu01", ["workspaces"])[0]


def lines(member: Member, name: str, token: str = "0a1b") -> list[str]:  # noqa: S107 - a made-up one
    space: Workspace = next(space for space in declared_of(member) if space.name == name)
    return [*url_lines(member, space, token), *browser_lines(member, space, token)]


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
    tunnel, through, address = lines(member_with(tmp_path, more), "alice-lab")
    assert tunnel.startswith("ssh -N -L 21001:127.0.0.1:21001 ")
    assert through == "http://127.0.0.1:21001/alice/alice-lab/?token=0a1b"
    assert address == f"https://{place}/alice/alice-lab/?token=0a1b"


def test_tensorboards_token_is_the_proxys_and_not_the_tunnels(tmp_path: Path) -> None:
    _, through, address = lines(member_with(tmp_path), "alice-board")
    assert through == "http://127.0.0.1:21002/alice/alice-board/"
    assert address == "https://192.0.2.1/alice/alice-board/?token=0a1b"


def test_an_unasked_token_is_not_shown(tmp_path: Path) -> None:
    assert not any("token" in line for line in lines(member_with(tmp_path), "alice-lab", ""))


def test_without_a_proxy_or_a_page_there_is_no_such_address(tmp_path: Path) -> None:
    assert len(lines(member_with(tmp_path, roles="workspaces"), "alice-lab")) == 2
    assert len(lines(member_with(tmp_path), "alice-run")) == 1
