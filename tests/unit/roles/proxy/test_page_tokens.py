"""TensorBoard behind a real nginx: access only with its token, which appears in no log and no public file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.plan.model import Change
from hostwright.plan.testing import changes_of
from hostwright.standard.roles.proxy import TOKENS, Proxy
from hostwright.standard.roles.proxy.states.tokens import PageTokens
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from hostwright.standard.roles.workspaces.declared.workspace import STATE
from tests.lab.sshd import free_port
from tests.unit.roles.base.states.certificates import made, run
from tests.unit.roles.proxy import nginxes
from tests.unit.roles.proxy.nginxes import ADDRESS, Nginx, configuration, running, upstream

RIGHT, OTHER = "0a" * 24, "1b" * 24


@dataclass(frozen=True)
class Gate:
    """The state in a separate directory with the workspaces' tokens."""

    folder: Path
    names: tuple[str, ...]

    @property
    def file(self) -> Path:
        return self.folder / "tokens.conf"

    def give(self, name: str, token: str) -> None:
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "token").write_text(token)

    @property
    def state(self) -> PageTokens:
        return PageTokens(str(self.file), self.names)

    def problems(self) -> list[str]:
        return run(self.state.probes()[0].script.replace(STATE, str(self.folder))).splitlines()

    def make(self) -> None:
        (change,) = changes_of(self.state, {"problems": "absent\n"})
        assert isinstance(change, Change)
        run(change.steps[0].script.replace(STATE, str(self.folder)))


def test_a_file_of_tokens_is_roots_alone_and_said_to_be_wrong_without_any_token(tmp_path: Path) -> None:
    gate = Gate(tmp_path, ("bob-board",))
    gate.give("bob-board", RIGHT)
    assert gate.problems() == ["absent"]
    gate.make()
    assert gate.problems() == []
    assert oct(gate.file.stat().st_mode)[-3:] == "600"
    gate.file.chmod(0o644)
    gate.give("bob-board", OTHER)
    assert gate.problems() == ["others may read it", "not the tokens that the workspaces have"]
    gate.make()
    assert gate.problems() == []
    assert OTHER in gate.file.read_text()
    assert RIGHT not in gate.file.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        f'{RIGHT}" 1; }} evil',
        f"{RIGHT[:-1]}.",
        f"{RIGHT}\x00{RIGHT}",
        "~.*",
        "$(id)",
        f"  {RIGHT}",
        "0A" * 24,
    ],
)
def test_a_token_that_is_none_of_ours_lets_nobody_in_and_is_nobodys_text(tmp_path: Path, text: str) -> None:
    """The workspace's user owns the file, and root owns nginx's configuration."""
    gate = Gate(tmp_path, ("bob-board", "eve-board"))
    gate.give("bob-board", RIGHT)
    gate.give("eve-board", text)
    gate.make()
    written = gate.file.read_text()
    assert written.count(RIGHT) == 2
    assert written.count("default 0;") == 4
    assert re.sub(r"~\^[0-9a-f]{48}\$ 1;\n", "", written).count(" 1;") == 0


def test_no_workspace_is_an_empty_file(tmp_path: Path) -> None:
    gate = Gate(tmp_path, ())
    gate.make()
    assert "map" not in gate.file.read_text()
    assert gate.problems() == []


@dataclass(frozen=True)
class Site:
    nginx: Nginx
    board: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    binary, folder = nginxes.program(tmp_path_factory), tmp_path_factory.mktemp("site")
    own = made(tmp_path_factory.mktemp("tls"), ("gpu01",))
    gate = Gate(tmp_path_factory.mktemp("tokens"), ("alice-board", "bob-board", "carol-board"))
    gate.give("alice-board", OTHER)
    gate.give("bob-board", RIGHT)  # carol's token was never created
    gate.make()
    with upstream() as board:
        declared = Workspaces(
            users={"alice": WorkspaceUser(2001), "bob": WorkspaceUser(2002), "carol": WorkspaceUser(2003)},
            containers={
                "alice-board": WorkspaceEntry("alice", "tensorboard", port=free_port()),
                "bob-board": WorkspaceEntry("bob", "tensorboard", port=board),
                "carol-board": WorkspaceEntry("carol", "tensorboard", port=free_port()),
            },
        )
        port = free_port()
        text = configuration(Proxy(listen=(f"{ADDRESS}:{port}",)), declared).replace(TOKENS, str(gate.file))
        text = text.replace("/var/lib/hostwright/proxy/host.pem", own.file)
        with running(binary, folder, text, port, Path(own.directory) / "authority.crt") as nginx:
            yield Site(nginx, "/bob/bob-board/")


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "hostwright=",
        f"hostwright={OTHER}",
        f"hostwright={RIGHT}0",
        f"x={RIGHT}",
        f"hostwright={RIGHT.upper()}",
        "hostwright=~.*",
    ],
)
def test_nobody_comes_in_without_the_workspaces_own_token(site: Site, cookie: str) -> None:
    for path in (site.board, f"{site.board}data/logdir", f"{site.board}?token={OTHER}", f"{site.board}?token="):
        status, _, body = site.nginx.get(path, **({"Cookie": cookie} if cookie else {}))
        assert status == 403
        assert b"workspace.url --token" in body


def test_the_token_in_the_address_becomes_a_cookie_for_this_page_alone(site: Site) -> None:
    status, headers, _ = site.nginx.get(f"{site.board}?token={RIGHT}")
    assert (status, headers["Location"]) == (302, site.board)
    value, *attributes = headers["Set-Cookie"].split("; ")
    assert value == f"hostwright={RIGHT}"
    assert {"Path=/bob/bob-board/", "Secure", "HttpOnly", "SameSite=Lax"} <= set(attributes)
    status, _, body = site.nginx.get(f"{site.board}data/runs?x=1", Cookie=f"a=b; {value}")
    assert (status, json.loads(body)["path"]) == (200, "/bob/bob-board/data/runs?x=1"), "whole, as path_prefix wants it"


def test_a_post_with_the_cookie_arrives(site: Site) -> None:
    status, _, body = site.nginx.get(
        f"{site.board}data/plugin/timeseries/timeSeries", method="PUT", body=b"x" * 10, Cookie=f"hostwright={RIGHT}"
    )
    assert (status, json.loads(body)["read"]) == (200, 10)


@pytest.mark.parametrize(
    "path", ["/bob/bob-board/%0d%0aX:1", "/bob//bob-board/x", "/bob/x/../bob-board/", "/bob/bob-board/."]
)
def test_no_other_spelling_of_the_path_goes_past_the_token(site: Site, path: str) -> None:
    assert site.nginx.get(path)[0] == 403
    status, headers, _ = site.nginx.get(f"{path}?token={RIGHT}")
    assert (status, headers["Location"]) == (302, site.board)


def test_a_token_of_one_opens_no_other(site: Site) -> None:
    for path in ("/alice/alice-board/", "/carol/carol-board/"):
        assert site.nginx.get(path, Cookie=f"hostwright={RIGHT}")[0] == 403
        assert site.nginx.get(f"{path}?token={RIGHT}")[0] == 403
    assert site.nginx.get("/alice/alice-board/", Cookie=f"hostwright={OTHER}")[0] == 502, "in, and it does not run"


def test_the_token_is_in_no_log(site: Site) -> None:
    site.nginx.get(f"{site.board}?token={RIGHT}")
    site.nginx.get(f"{site.board}x", Cookie=f"hostwright={RIGHT}", Referer=f"https://gpu01{site.board}?token={RIGHT}")
    logs = [path for path in site.nginx.folder.iterdir() if path.suffix == ".log"]
    assert any(path.read_bytes() for path in logs)
    assert not [path for path in logs if RIGHT.encode() in path.read_bytes()]
