"""Test support: the distribution's nginx with the role's configuration, and servers behind it that report their
requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hostwright.plan.roles.role import RoleContext
from hostwright.resources.files.files import File
from hostwright.standard.roles.proxy import CONF, Proxy, names_of_people, proxy, served
from hostwright.standard.roles.workspaces import Workspaces, workspaces
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from tests.lab.sshd import free_port
from tests.unit.roles.base.states.certificates import made

ADDRESS = "127.0.7.3"
NAME = "gpu01.example.org"


def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return this machine's nginx, else the distribution's, unpacked."""
    if there := shutil.which("nginx") or shutil.which("/usr/sbin/nginx"):
        return Path(there)
    folder = tmp_path_factory.mktemp("nginx")
    for package in ("nginx", "nginx-core"):  # older distributions have the program in the second package
        subprocess.run(("apt-get", "download", package), cwd=folder, capture_output=True, check=False, timeout=120)
    for package in folder.glob("*.deb"):
        subprocess.run(("dpkg", "-x", package, folder), check=True)
    found = folder / "usr/sbin/nginx"
    if not found.exists():
        pytest.skip("there is no nginx, and none can be fetched")
    return found


def role_context(declared: Workspaces) -> RoleContext:
    """Return the role's context for a host with these workspaces."""
    return RoleContext(stack=None, roles=((workspaces, declared),))  # type: ignore[arg-type]  # no section of it is read


def configuration(v: Proxy, declared: Workspaces) -> str:
    """Return the role's configuration for nginx."""
    states = proxy.resources(v, role_context(declared))
    return next(state.content for state in states if isinstance(state, File) and state.path == CONF)


@dataclass(frozen=True)
class Nginx:
    """A running nginx; ``folder`` has its logs."""

    folder: Path
    port: int
    authority: Path

    def get(
        self, path: str, *, host: str = "gpu01", method: str = "GET", body: bytes = b"", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of a response over TLS with the authority's certificate for ``host``."""
        with self.connected(host) as tls:
            tls.sendall(request(path, f"{host}:{self.port}", method=method, body=body, **headers))
            answer = HTTPResponse(tls, method=method)
            answer.begin()
            return answer.status, dict(answer.getheaders()), answer.read()

    @contextmanager
    def connected(self, host: str = "gpu01") -> Iterator[ssl.SSLSocket]:
        """Return a connection whose certificate is the authority's for this name."""
        context = ssl.create_default_context(cafile=str(self.authority))
        with (
            socket.create_connection((ADDRESS, self.port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=host) as tls,
        ):
            yield tls


def request(path: str, host: str, *, method: str = "GET", body: bytes = b"", **headers: str) -> bytes:
    """Return the bytes of a browser's request."""
    lines = {"Host": host, "Connection": "close"}
    if body:
        lines["Content-Length"] = str(len(body))
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


@contextmanager
def running(binary: Path, folder: Path, text: str, port: int, authority: Path) -> Iterator[Nginx]:
    """Run nginx with this configuration during the block; logs and temporary files are below ``folder``."""
    conf = written(folder, text)
    with subprocess.Popen((binary, "-c", conf, "-p", folder, "-g", "daemon off;"), stderr=subprocess.PIPE) as process:
        try:
            _wait(port, process)
            yield Nginx(folder, port, authority)
        finally:
            process.terminate()
            process.wait(60)


def written(folder: Path, text: str) -> Path:
    """Write a complete configuration in Debian's form that includes this part."""
    (folder / "workspaces.conf").write_text(text.replace("/var/log/nginx/", f"{folder}/"))
    places = "".join(
        f"  {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = folder / "nginx.conf"
    conf.write_text(
        f"error_log {folder}/error.log;\npid {folder}/pid;\nuser root;\nevents {{ worker_connections 64; }}\n"
        f"http {{\n{places}  access_log {folder}/access.log;\n  include {folder}/workspaces.conf;\n}}\n"
    )
    return conf


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection((ADDRESS, port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    process.kill()
    assert process.stderr
    raise AssertionError(f"nginx does not answer: {process.stderr.read().decode()}")


class _Tells(BaseHTTPRequestHandler):
    """Server that responds with the request, and echoes on upgraded websocket connections."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.headers.get("Upgrade", "").lower() == "websocket" and self.headers.get("Connection") == "upgrade":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            accept = base64.b64encode(hashlib.sha1(key.encode(), usedforsecurity=False).digest()).decode()
            self.send_header("Sec-WebSocket-Accept", accept)
            self.end_headers()
            while data := self.connection.recv(4096):
                self.connection.sendall(data)
            self.close_connection = True
            return
        length = self._read()
        body = json.dumps({"path": self.path, "headers": dict(self.headers), "read": length}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_PATCH = do_GET  # noqa: N815 - the name that http.server looks for

    def _read(self) -> int:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            total = 0
            while size := int(self.rfile.readline(), 16):
                total += len(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return total
        return len(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def log_message(self, *_: object) -> None:
        """Discard log messages."""


@contextmanager
def upstream() -> Iterator[int]:
    """Return the port of such a server on the loopback interface."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tells)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Nginx, Path]]:
    """Run an nginx where alice and bob each have a workspace at a separate name; with the authority's file."""
    binary, folder, tls = program(tmp_path_factory), *(tmp_path_factory.mktemp(n) for n in ("named", "names"))
    authority = Path(made(tls, (NAME,)).directory) / "authority.pem"
    with upstream() as alice, upstream() as bob:
        port = free_port()
        declared = Workspaces(
            users={"alice": WorkspaceUser(2001), "bob": WorkspaceUser(2002)},
            containers={
                "alice-lab": WorkspaceEntry("alice", "jupyter", port=alice),
                "bob-lab": WorkspaceEntry("bob", "jupyter", port=bob),
            },
        )
        v = Proxy(listen=(f"{ADDRESS}:{port}",), names=(NAME,), people_domain=NAME)
        own = made(tls, (NAME, *names_of_people(v, served(role_context(declared)))))
        text = configuration(v, declared).replace("/var/lib/hostwright/proxy/host.pem", own.file)
        with running(binary, folder, text, port, Path(own.directory) / "authority.crt") as nginx:
            yield nginx, authority
