"""JupyterHub's paths in a real nginx: routing to users' servers, and the response if none runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.files import File
from hostwright.standard.roles.jupyterhub import Jupyterhub, jupyterhub
from hostwright.standard.roles.jupyterhub.desired import LIMITS, LOCATIONS
from hostwright.standard.roles.proxy import Proxy, proxy
from hostwright.standard.roles.workspaces import Workspaces, workspaces
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceUser
from tests.lab.sshd import free_port
from tests.unit.roles.base.states.certificates import made
from tests.unit.roles.proxy import nginxes
from tests.unit.roles.proxy.nginxes import ADDRESS, Nginx, configuration, request, running, upstream
from tests.unit.roles.workspaces.spaces import STACK


def files(v: Jupyterhub, declared: Workspaces) -> dict[str, str]:
    ctx = RoleContext(STACK, roles=((workspaces, declared), (proxy, Proxy()), (jupyterhub, v)))
    states = [getattr(state, "resource", state) for state in jupyterhub.resources(v, ctx)]
    return {state.path: state.content for state in states if isinstance(state, File)}


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """Run nginx with alice's server and the hub; bob's server is stopped."""
    binary, folder = nginxes.program(tmp_path_factory), tmp_path_factory.mktemp("site")
    own = made(tmp_path_factory.mktemp("tls"), ("gpu01",))
    with upstream() as alice, upstream() as hub:
        port = free_port()
        declared = Workspaces(users={name: WorkspaceUser(uid) for name, uid in (("alice", 2001), ("bob", 2002))})
        v = Jupyterhub()
        text = configuration(Proxy(listen=(f"{ADDRESS}:{port}",)), declared)
        text = text.replace("/var/lib/hostwright/proxy/host.pem", own.file)
        parts = files(v, declared)
        ports = {user: json.loads(_settings(parts))["users"][user]["port"] for user in ("alice", "bob")}
        locations = parts[LOCATIONS].replace(f"{v.address}:{v.port}", f"127.0.0.1:{hub}")
        locations = locations.replace(f":{ports['alice']};", f":{alice};").replace(f":{ports['bob']};", ":1;")
        (folder / "parts").mkdir()
        (folder / "parts" / "jupyterhub.conf").write_text(locations)
        text = text.replace("/etc/nginx/hostwright-workspaces.d/", f"{folder}/parts/")
        assert f"include {folder}/parts/*.conf;" in text
        (folder / "hub").write_text(str(hub))
        (folder / "alice").write_text(str(alice))
        with running(binary, folder, parts[LIMITS] + text, port, Path(own.directory) / "authority.crt") as opened:
            yield opened


def _settings(parts: dict[str, str]) -> str:
    return next(text for path, text in parts.items() if path.endswith("settings.json"))


def port_asked(nginx: Nginx, path: str) -> str:
    """Return the port to which nginx routed a path, from its log, which is written after the response."""
    log, end = nginx.folder / "hostwright-workspaces.log", time.monotonic() + 60
    while time.monotonic() < end:
        lines = [line for line in log.read_text().splitlines() if f" {path} " in line]
        if lines:
            return re.findall(r"127\.0\.0\.1:(\d+)", lines[-1])[-1]
        time.sleep(0.02)
    raise AssertionError(f"{path} is not in the log")


def test_a_server_that_runs_answers_and_the_hub_for_one_that_does_not(nginx: Nginx) -> None:
    alice, hub = ((nginx.folder / name).read_text() for name in ("alice", "hub"))
    asked = {
        "/jupyterhub/user/alice/lab": alice,
        "/jupyterhub/user/bob/lab": hub,
        "/jupyterhub/hub/home": hub,
        "/jupyterhub/user/eve/lab": hub,
    }
    for path, port in asked.items():
        status, _, body = nginx.get(path)
        assert (status, json.loads(body)["path"]) == (200, path)
        assert port_asked(nginx, path) == port


def test_a_body_reaches_the_hub_for_a_server_that_does_not_run(nginx: Nginx) -> None:
    status, _, body = nginx.get("/jupyterhub/user/bob/api/x", method="PUT", body=b"x" * 5000)
    assert (status, json.loads(body)["read"]) == (200, 5000)


@pytest.mark.parametrize("path", ["hub/login", "hub/home", "user/alice/lab", "user/bob/lab"])
def test_no_client_says_by_which_way_it_came(nginx: Nginx, path: str) -> None:
    """jupyterhub#2284: login cookies lacked Secure if X-Scheme was http."""
    claims = {"X_Scheme": "http", "Forwarded": "proto=http", "X_Forwarded_Proto": "https,http"}
    headers = json.loads(nginx.get(f"/jupyterhub/{path}", **claims)[2])["headers"]
    told = {name: value for name, value in headers.items() if "http" in value}
    assert told == {"X-Forwarded-Proto": "https"}


def test_a_websocket_is_passed_on_to_a_persons_server(nginx: Nginx) -> None:
    with nginx.connected() as tls:
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        tls.sendall(request("/jupyterhub/user/alice/api/kernels/1/channels", f"gpu01:{nginx.port}", **headers))
        assert tls.recv(4096).startswith(b"HTTP/1.1 101")


def test_passwords_cannot_be_tried_without_end(nginx: Nginx) -> None:
    began, answers = time.monotonic(), list[int]()
    while 429 not in answers:
        answers.append(nginx.get("/jupyterhub/hub/login", method="PUT", body=b"x")[0])
        assert len(answers) <= 22 + (time.monotonic() - began) / 3, "20 at once, and one more every 3 s"
    assert answers[:20] == [200] * 20
    assert nginx.get("/jupyterhub/hub/home")[0] == 200
