"""This machine's server of files: who gets what, once; and that strangers and slow ones hold up nobody."""

from __future__ import annotations

import http.client
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.apply.delivery.looking import StoredFile
from hostwright.apply.delivery.pulling import Grant
from hostwright.apply.delivery.sources.servers import FileServer
from hostwright.apply.delivery.sources.settings import Ports
from hostwright.common.errors import HostwrightError, InputError
from hostwright.transport.serving import answering
from tests.lab.sshd import free_port
from tests.unit.apply.delivery.hosts import CONTENT, HERE, artifact_of
from tests.unit.rebuild.install.test_seeds_attacks import places_given
from tests.unit.support.hostjobs import until

PATIENCE_S = 60.0


@pytest.fixture
def server() -> Iterator[FileServer]:
    one = FileServer()
    yield one
    one.close()


@pytest.fixture
def item(tmp_path: Path) -> StoredFile:
    (tmp_path / "cuda.deb").write_bytes(CONTENT)
    return StoredFile.of(artifact_of(CONTENT), tmp_path / "cuda.deb")


def given(server: FileServer, item: StoredFile, peer: str = HERE) -> Grant:
    return server.grant(item, HERE, Ports(), peer)


def ask(
    grant: Grant, path: str, *, token: str | None = None, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and content; ``range_`` and the like are headers."""
    connection = http.client.HTTPConnection(grant.address, grant.port, timeout=PATIENCE_S)
    shown = grant.token if token is None else token
    named = {name.rstrip("_").title(): value for name, value in headers.items()}
    try:
        connection.request(method, path, headers={**({"Authorization": f"Bearer {shown}"} if shown else {}), **named})
        got = connection.getresponse()
        return got.status, dict(got.getheaders()), got.read()
    finally:
        connection.close()


def test_a_file_is_served_once_to_who_has_its_token(server: FileServer, item: StoredFile) -> None:
    grant = given(server, item)
    status, headers, content = ask(grant, f"/{item.sha256}")
    assert (status, content) == (200, CONTENT)
    assert headers["Content-Length"] == str(len(CONTENT))
    assert ask(grant, f"/{item.sha256}")[0] == 403
    until(lambda: server.sent_bytes == len(CONTENT), "all bytes are counted")


@pytest.mark.parametrize("start", [1, 1_000_000, len(CONTENT) - 1])
def test_what_was_begun_is_continued(server: FileServer, item: StoredFile, start: int) -> None:
    status, headers, content = ask(given(server, item), f"/{item.sha256}", range_=f"bytes={start}-")
    assert (status, content) == (206, CONTENT[start:])
    assert headers["Content-Range"] == f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"


@pytest.mark.parametrize(
    "text",
    [f"bytes={len(CONTENT)}-", "bytes=-5", "bytes=0-5", "bytes=0-,5-", "items=0-", "", "bytes=" + "9" * 99],
)
def test_no_other_range_is_served(server: FileServer, item: StoredFile, text: str) -> None:
    status, _, content = ask(given(server, item), f"/{item.sha256}", range_=text)
    assert (status, content) == (416, b"")


@pytest.mark.parametrize("token", ["", "x", "x" * 32, "é" * 32, "x" * 5000])
def test_without_its_token_nothing_is_served(server: FileServer, item: StoredFile, token: str) -> None:
    grant = given(server, item)
    assert ask(grant, f"/{item.sha256}", token=token.encode().decode("latin-1"))[0] == 403
    assert ask(grant, f"/{item.sha256}")[0] == 200  # it was not used up


def test_a_token_is_for_one_file(server: FileServer, item: StoredFile, tmp_path: Path) -> None:
    (tmp_path / "other.deb").write_bytes(b"other")
    other = StoredFile.of(artifact_of(b"other", "other"), tmp_path / "other.deb")
    first, second = given(server, item), given(server, other)
    assert ask(first, f"/{other.sha256}")[0] == 403
    assert ask(second, f"/{other.sha256}") == (200, ask_headers(5), b"other")
    assert ask(first, f"/{item.sha256}")[0] == 200


def ask_headers(length: int) -> dict[str, str]:
    return {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": str(length),
        "Cache-Control": "no-store",
        "Connection": "close",
    }


def test_paths_lead_nowhere_else(server: FileServer, item: StoredFile) -> None:
    for path in (
        "/", "//", f"/{item.sha256}/", f"/./{item.sha256}", f"/../{item.sha256}", "/etc/passwd", "/../../etc/passwd",
        f"/{item.sha256}%2f..%2fx", f"/{item.sha256}?x", f"/{item.path}", f"/{item.sha256.upper()}", "*",
    ):  # fmt: skip
        assert ask(given(server, item), path)[0] == 403, path


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused(server: FileServer, item: StoredFile, method: str) -> None:
    assert ask(given(server, item), f"/{item.sha256}", method=method)[0] == 501


def test_a_token_is_void_once_it_is_withdrawn_or_the_run_is_over(server: FileServer, item: StoredFile) -> None:
    grant, other = given(server, item), given(server, item)
    server.withdraw(grant)
    server.withdraw(grant)
    assert ask(grant, f"/{item.sha256}")[0] == 403
    server.close()
    with pytest.raises(OSError, match="refused"):
        ask(other, f"/{item.sha256}")
    with pytest.raises(HostwrightError, match="the file server of this run is closed"):
        given(server, item)


def test_it_listens_at_the_address_that_is_asked_for_and_no_other(server: FileServer, item: StoredFile) -> None:
    first, second = server.grant(item, "127.0.3.1", Ports(), ""), server.grant(item, "127.0.3.2", Ports(), "")
    assert (first.address, second.address) == ("127.0.3.1", "127.0.3.2")
    assert first.port == server.grant(item, "127.0.3.1", Ports(), "").port
    for address in ("127.0.0.1", "127.0.3.3"):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, first.port), PATIENCE_S)
    assert ask(second, f"/{item.sha256}")[0] == 200


def test_an_address_of_ipv6(server: FileServer, item: StoredFile) -> None:
    grant = server.grant(item, "::1", Ports(), "::1")
    assert ask(grant, f"/{item.sha256}")[0] == 200


def test_the_first_port_of_a_range_that_is_free(server: FileServer, item: StoredFile) -> None:
    port = free_port()
    with socket.create_server((HERE, port)):
        grant = server.grant(item, HERE, Ports(port, port + 20), "")
        assert port < grant.port <= port + 20
        with pytest.raises(HostwrightError, match="another program uses this port"):
            server.grant(item, HERE, Ports(port, port), "")
    with pytest.raises(InputError, match="this machine does not have this address"):
        server.grant(item, "192.0.2.7", Ports(), "")


def test_a_file_that_went_away_or_shrank_is_no_whole_file(server: FileServer, item: StoredFile) -> None:
    grant = given(server, item)
    item.path.write_bytes(CONTENT[:1000])
    with pytest.raises(http.client.IncompleteRead):
        ask(grant, f"/{item.sha256}")
    item.path.unlink()
    assert ask(given(server, item), f"/{item.sha256}")[0] == 410


def test_hosts_that_hold_tokens_have_places_of_their_own(server: FileServer, item: StoredFile) -> None:
    grant = server.grant(item, HERE, Ports(), "127.0.7.7")
    silent = [socket.create_connection((HERE, grant.port), PATIENCE_S, (f"127.1.{n}.1", 0)) for n in range(40)]
    with socket.create_connection((HERE, grant.port), PATIENCE_S, ("127.0.7.7", 0)) as host:
        host.sendall(f"GET /{item.sha256} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {grant.token}\r\n\r\n".encode())
        content = b"".join(iter(lambda: host.recv(1 << 20), b""))
    assert content.endswith(CONTENT[-1000:])
    for one in silent:
        one.close()


def fetch(grant: Grant, item: StoredFile, source: str) -> bytes:
    """The answer to a host's own request."""
    with socket.create_connection((HERE, grant.port), PATIENCE_S, (source, 0)) as host:
        host.sendall(f"GET /{item.sha256} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {grant.token}\r\n\r\n".encode())
        return b"".join(iter(lambda: host.recv(1 << 20), b""))


@pytest.mark.parametrize("peer", ["127.0.7.7", "", "gpu01.rack3"])
def test_who_says_nothing_stops_no_fetch_of_a_host_with_the_same_address(
    server: FileServer, item: StoredFile, peer: str
) -> None:
    """A user of the host may connect from its address, too; a host behind a jump host is among the strangers."""
    grant = server.grant(item, HERE, Ports(), peer)
    silent = [socket.create_connection((HERE, grant.port), PATIENCE_S, ("127.0.7.7", 0)) for _ in range(150)]
    assert fetch(grant, item, "127.0.7.7").endswith(CONTENT[-1000:])
    for one in silent:
        one.close()


def test_a_fetch_that_began_is_ended_for_nobody(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(1 << 26))
    large = StoredFile.of(artifact_of(bytes(1 << 26), "large"), tmp_path / "large")
    grant = given(server, large)
    with socket.create_connection((HERE, grant.port), PATIENCE_S) as host:
        host.sendall(f"GET /{large.sha256} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {grant.token}\r\n\r\n".encode())
        got = len(host.recv(1 << 16))
        silent = [socket.create_connection((HERE, grant.port), PATIENCE_S) for _ in range(40)]
        while piece := host.recv(1 << 20):
            got += len(piece)
    assert got > 1 << 26
    for one in silent:
        one.close()


def test_a_token_is_for_the_hosts_own_address(server: FileServer, item: StoredFile) -> None:
    grant = server.grant(item, HERE, Ports(), "127.0.7.7", bound=True)
    assert b" 403 " in fetch(grant, item, "127.0.7.8").partition(b"\r\n")[0]
    assert fetch(grant, item, "127.0.7.7").endswith(CONTENT[-1000:])  # it was not used up


def test_who_takes_a_file_too_slowly_is_cut(
    server: FileServer, item: StoredFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    big = tmp_path / "big.deb"
    with big.open("wb") as file:
        file.truncate(64 << 20)
    monkeypatch.setattr(answering, "PIECE_LONGEST_S", 0.5)
    given_places = places_given(monkeypatch)
    slow = StoredFile(item.artifact, big, item.sha256, 64 << 20)
    grant = given(server, slow)
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((HERE, grant.port))
        one.sendall(f"GET /{item.sha256} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {grant.token}\r\n\r\n".encode())
        taken = lambda: server._servers[HERE, Ports()].expected.taken  # noqa: E731
        until(lambda: given_places == [True], "a place is taken")
        until(lambda: bool(one.recv(64)) and taken() == 0, "who drips is cut")
    assert server.sent_bytes < 64 << 20


def test_eight_files_at_the_same_time(server: FileServer, item: StoredFile) -> None:
    grants = [given(server, item) for _ in range(8)]
    got: list[bool] = []
    threads = [
        threading.Thread(target=lambda grant=grant: got.append(ask(grant, f"/{item.sha256}")[2] == CONTENT))
        for grant in grants
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert got == [True] * 8


def test_tokens_are_shown_nowhere(
    server: FileServer, item: StoredFile, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    grant = given(server, item)
    for path in (f"/{item.sha256}", "/x"):
        ask(grant, path)
    captured = capfd.readouterr()
    assert captured.out + captured.err + caplog.text == ""
    assert grant.token not in repr(grant) + repr(server._given)
