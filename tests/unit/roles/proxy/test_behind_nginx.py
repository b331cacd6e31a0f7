"""The role's configuration in a real nginx, checked against public reports about Jupyter behind a proxy."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.standard.roles.proxy import Proxy
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from tests.lab.sshd import free_port
from tests.unit.roles.base.states.certificates import made
from tests.unit.roles.proxy import nginxes
from tests.unit.roles.proxy.nginxes import ADDRESS, Nginx, configuration, request, running, upstream

TOKEN = "3f1c9a" * 8
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@dataclass(frozen=True)
class Site:
    nginx: Nginx
    alice: int
    bob: int


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    binary, folder = nginxes.program(tmp_path_factory), tmp_path_factory.mktemp("site")
    own = made(tmp_path_factory.mktemp("tls"), ("gpu01",))
    with upstream() as alice, upstream() as bob:
        port = free_port()
        declared = Workspaces(
            users={"alice": WorkspaceUser(2001), "bob": WorkspaceUser(2002), "carol": WorkspaceUser(2003)},
            containers={
                "alice-lab": WorkspaceEntry("alice", "jupyter", port=alice),
                "bob-lab": WorkspaceEntry("bob", "jupyter", port=bob),
                "carol-lab": WorkspaceEntry("carol", "jupyter", port=free_port()),  # which is stopped
            },
        )
        text = configuration(Proxy(listen=(f"{ADDRESS}:{port}",), upload="8m"), declared)
        text = text.replace("/var/lib/hostwright/proxy/host.pem", own.file)
        with running(binary, folder, text, port, Path(own.directory) / "authority.crt") as nginx:
            yield Site(nginx, alice, bob)


def asked(body: bytes) -> dict:
    return json.loads(body)


def test_each_path_leads_to_its_workspace_whole(site: Site) -> None:
    """TensorBoard's ``path_prefix`` and Jupyter's ``base_url`` need the unchanged path (tensorboard#2263)."""
    status, _, body = site.nginx.get("/alice/alice-lab/api/contents/a%20b%2Fc?x=%2F")
    assert (status, asked(body)["path"]) == (200, "/alice/alice-lab/api/contents/a%20b%2Fc?x=%2F")
    assert asked(site.nginx.get("/bob/bob-lab/lab")[2])["path"] == "/bob/bob-lab/lab"


@pytest.mark.parametrize("path", ["/", "/alice/", "/alice", "/bob/alice-lab/", "/alice/alice-la/", "/index.html"])
def test_any_other_path_is_not_found_and_names_nobody(site: Site, path: str) -> None:
    status, headers, body = site.nginx.get(path)
    assert status == 404
    assert not re.search(rb"alice|bob|\d\.\d", body)
    assert headers["Server"] == "nginx"


def test_a_path_without_its_slash_is_led_on_with_port_and_token(site: Site) -> None:
    """tensorboard#1176; the redirect must keep the port and https."""
    status, headers, _ = site.nginx.get(f"/alice/alice-lab?token={TOKEN}")
    assert (status, headers["Location"]) == (301, f"/alice/alice-lab/?token={TOKEN}")


def test_hosts_and_origins_agree_with_the_port(site: Site) -> None:
    """jupyterhub#1457, jupyter_server#46: "Blocking Cross Origin" if Host lacks the port."""
    headers = asked(site.nginx.get("/alice/alice-lab/")[2])["headers"]
    assert headers["Host"] == f"gpu01:{site.nginx.port}"
    assert headers["X-Forwarded-Proto"] == "https"


def test_what_a_client_claims_of_itself_is_not_passed_on(site: Site) -> None:
    claims = {"X_Forwarded_For": "6.6.6.6", "X_Real_IP": "6.6.6.6", "X_Forwarded_Proto": "http"}
    headers = asked(site.nginx.get("/alice/alice-lab/", **claims)[2])["headers"]
    assert "6.6.6.6" not in str(headers)
    assert headers["X-Forwarded-Proto"] == "https"


@pytest.mark.parametrize(
    "header",
    [
        "Forwarded", "X_Scheme", "X_Forwarded_Scheme", "X_Forwarded_Protocol", "X_Forwarded_Ssl", "X_Forwarded_Port",
        "X_Forwarded_Server", "X_Forwarded_Prefix", "X_Forwarded_Context", "X_ProxyContextPath", "X_Url_Scheme",
        "Front_End_Https",
    ],
)  # fmt: skip
def test_no_other_header_of_a_client_says_how_it_came(site: Site, header: str) -> None:
    """jupyterhub#2284: tornado prefers X-Scheme to X-Forwarded-Proto, and JupyterHub prefers Forwarded to both, so that
    cookies lacked Secure.
    """
    headers = asked(site.nginx.get("/alice/alice-lab/", **{header: "proto=http"})[2])["headers"]
    assert "proto=http" not in headers.values()
    assert headers["X-Forwarded-Proto"] == "https"


@pytest.mark.parametrize(
    "path", ["api/kernels/1/channels?session_id=2", "terminals/websocket/1", "api/events/subscribe"]
)
def test_every_websocket_is_upgraded(site: Site, path: str) -> None:
    """notebook#1311, #432, #6154: 400, 'Can "Upgrade" only to "WebSocket"'; not only the kernels' path (#625)."""
    upgrade = {
        "Upgrade": "websocket", "Connection": "keep-alive, Upgrade", "Sec_WebSocket_Key": KEY,
        "Sec_WebSocket_Version": "13",
    }  # fmt: skip
    with site.nginx.connected() as tls:
        tls.sendall(request(f"/alice/alice-lab/{path}", f"gpu01:{site.nginx.port}", **upgrade))
        head = b""
        while b"\r\n\r\n" not in head:
            head += tls.recv(4096)
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
        tls.sendall(b"frame")
        assert tls.recv(4096) == b"frame"


def test_nothing_but_a_websocket_takes_a_connection_over(site: Site) -> None:
    headers = asked(site.nginx.get("/alice/alice-lab/", Upgrade="h2c", Connection="Upgrade, HTTP2-Settings")[2])[
        "headers"
    ]
    assert "Upgrade" not in headers
    assert headers["Connection"] == "close"


def test_uploads_above_a_megabyte_go_through_and_the_limit_holds(site: Site) -> None:
    """jupyterlab#4214, jupyterhub#1569: 413 for a notebook of 1080562 bytes."""
    status, _, body = site.nginx.get("/alice/alice-lab/api/contents/n.ipynb", method="PUT", body=b"x" * 5_000_000)
    assert (status, asked(body)["read"]) == (200, 5_000_000)
    assert site.nginx.get("/alice/alice-lab/api/contents/n.ipynb", method="PUT", Content_Length="9000000")[0] == 413


def test_a_workspace_that_does_not_run_is_a_502(site: Site) -> None:
    assert site.nginx.get("/carol/carol-lab/lab")[0] == 502


def test_tokens_are_in_no_log_whatever_happens(site: Site) -> None:
    nginx = site.nginx
    for path in ("/alice/alice-lab/", "/alice/alice-lab", "/carol/carol-lab/", "/nobody/", "/alice/alice-lab/%0a"):
        nginx.get(f"{path}?token={TOKEN}", Referer=f"https://gpu01/alice/alice-lab/?token={TOKEN}")
    nginx.get(f"/alice/alice-lab/?token={TOKEN}", method="PUT", Content_Length="9000000")
    with nginx.connected() as tls:
        tls.sendall(f"GET /alice/alice-lab/?token={TOKEN} HTTP/9.9\r\n\r\n".encode())
        tls.recv(4096)
    with nginx.connected() as tls:
        tls.sendall(f"GET /alice/alice-lab/?token={TOKEN} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".encode())
        tls.recv(4096)
    logs = {path.name: path.read_text() for path in nginx.folder.glob("*.log")}
    assert "/alice/alice-lab/ " in logs["hostwright-workspaces.log"]
    assert re.search(r"/carol/carol-lab/ 502 \d+ [\d.]+ 127\.0\.0\.1:\d+ 502", logs["hostwright-workspaces.log"])
    assert [name for name, text in logs.items() if TOKEN[:12] in text] == []


@pytest.mark.parametrize(
    "path",
    [
        "/alice/alice-lab/api/contents/Untitled%20Folder/Untitled%203.ipynb",  # notebook#5318
        "/alice/alice-lab/files/%2Fdata%2Cb",  # jupyter-server-proxy#510, hypothesis/via#103
        "/alice/alice-lab/files/100%25_0.2%25_1hr.zarr",  # fileglancer#161
        "/alice/alice-lab/static/node_modules/@org/package",  # jupyter-server-proxy#185
        "/alice/alice%2Dlab/lab",  # jhsingle-native-proxy#6
    ],
)
def test_names_of_files_arrive_as_the_browser_wrote_them(site: Site, path: str) -> None:
    for method in ("GET", "PATCH"):  # PATCH renames (orchest#2)
        status, _, body = site.nginx.get(path, method=method, body=b"{}" if method == "PATCH" else b"")
        assert (status, asked(body)["path"]) == (200, path)


def test_cookies_tokens_and_origins_arrive(site: Site) -> None:
    """jupyterlab#6425, jupyterhub#4604: "'_xsrf' argument missing"; notebook#1311: Origin must be forwarded."""
    sent = {
        "Cookie": "_xsrf=2|ab|cd|1", "X_XSRFToken": "2|ab|cd|1", "Authorization": "token x",
        "Origin": f"https://gpu01:{site.nginx.port}", "Referer": f"https://gpu01:{site.nginx.port}/alice/alice-lab/lab",
    }  # fmt: skip
    answer = asked(site.nginx.get("/alice/alice-lab/api/workspaces/lab?1559", method="PUT", body=b"{}", **sent)[2])
    headers = {name.lower(): value for name, value in answer["headers"].items()}
    assert {name: headers.get(name.lower().replace("_", "-")) for name in sent} == sent


def test_a_reload_ends_no_websocket(site: Site) -> None:
    """beakerx#2454, notebook#2442: open connections continue in the old worker."""
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Key": KEY}
    with site.nginx.connected() as tls:
        tls.sendall(request("/bob/bob-lab/api/kernels/1/channels", f"gpu01:{site.nginx.port}", **upgrade))
        head = b""
        while b"\r\n\r\n" not in head:
            head += tls.recv(4096)
        os.kill(int((site.nginx.folder / "pid").read_text()), signal.SIGHUP)
        assert site.nginx.get("/bob/bob-lab/lab")[0] == 200
        tls.sendall(b"still there")
        assert tls.recv(4096) == b"still there"


def test_a_page_is_at_its_persons_name_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A new user needs no new authority, which browsers would have to import again."""
    with nginxes.named(tmp_path_factory) as (nginx, authority):
        before = authority.read_bytes()
        hosts = (nginxes.NAME, f"alice.{nginxes.NAME}", f"bob.{nginxes.NAME}")
        found = {
            (host, path): nginx.get(path, host=host)[0]
            for host in hosts
            for path in ("/alice/alice-lab/", "/bob/bob-lab/")
        }
    assert [where for where, status in found.items() if status == 200] == [
        ("alice.gpu01.example.org", "/alice/alice-lab/"),
        ("bob.gpu01.example.org", "/bob/bob-lab/"),
    ]
    assert set(found.values()) == {200, 404}
    assert authority.read_bytes() == before
