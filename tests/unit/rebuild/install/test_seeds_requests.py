"""What a request for a seed may be: RFC 9112 as other servers' tests have it, and what peers say of themselves."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from hostwright.rebuild.install.seeds.rendering import Seed
from hostwright.rebuild.install.seeds.serving import SeedServer

HERE, PATIENCE_S = "127.0.0.1", 60.0
SEED = Seed({"user-data": b"the seed"}, "", "user-data")
PLAIN = b"GET /gpu07/user-data HTTP/1.1\r\nHost: 127.0.0.1\r\n"

TAKEN = {
    "of today's clients": PLAIN,
    "of HTTP/1.0": b"GET /gpu07/user-data HTTP/1.0\r\n",
    "a whole URL": b"GET http://127.0.0.1:8098/gpu07/user-data HTTP/1.1\r\nHost: 127.0.0.1:8098\r\n",
    "a whole URL of IPv6": b"GET http://[fd00::1]:8098/gpu07/user-data HTTP/1.1\r\nHost: [fd00::1]:8098\r\n",
    "a range": PLAIN + b"Range: bytes=0-3\r\n",
    "a condition": PLAIN + b"If-Modified-Since: Sun, 22 Nov 2099 00:00:00 GMT\r\nIf-None-Match: *\r\n",
    "compressed, if we could": PLAIN + b"Accept-Encoding: gzip, br\r\n",
    "a wish to go on": PLAIN + b"Connection: keep-alive\r\n",
    "a wish for another protocol": PLAIN + b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n",
    "content that nobody reads": PLAIN + b"Content-Length: 5\r\n",
    "a line of letters that are not ASCII": PLAIN + "X-Site: Köln\r\n".encode(),
}
REFUSED = {
    "no host": b"GET /gpu07/user-data HTTP/1.1\r\n",
    "two hosts": PLAIN + b"Host: elsewhere\r\n",
    "a space before the colon": PLAIN + b"Content-Length : 3\r\n",
    "two lengths": PLAIN + b"Content-Length: 3\r\nContent-Length: 2\r\n",
    "a negative length": PLAIN + b"Content-Length: -1\r\n",
    "a length with an underscore": PLAIN + b"Content-Length: 0_1\r\n",
    "a length with a sign": PLAIN + b"Content-Length: +1\r\n",
    "chunks of another kind": PLAIN + b"Transfer-Encoding: gzip, chunked\r\n",
    "a null in a name": PLAIN + b"X\0Y: z\r\n",
    "a null in a value": PLAIN + b"X: y\0z\r\n",
    "a line without a colon": PLAIN + b"X\r\n",
    "a name that is not ASCII": PLAIN + "Ü: z\r\n".encode(),
    "a header before the first line": b"X: y\r\n" + PLAIN,
    "no version": b"GET /gpu07/user-data\r\n",
    "an old version": PLAIN.replace(b"1.1", b"0.9"),
    "a new version": PLAIN.replace(b"1.1", b"2.0"),
    "a long version": PLAIN.replace(b"1.1", b"1" * 99),
    "a version of something else": PLAIN.replace(b"HTTP/", b"FTP/"),
    "a method in small letters": PLAIN.replace(b"GET", b"get"),
    "a method with a null": PLAIN.replace(b"GET", b"GET\0"),
    "two spaces": PLAIN.replace(b"GET ", b"GET  "),
    "a tab": PLAIN.replace(b"GET ", b"GET\t"),
    "no slash": PLAIN.replace(b" /", b" "),
    "two slashes": PLAIN.replace(b" /", b" //"),
    "a question": PLAIN.replace(b"user-data", b"user-data?x=y"),
    "a question in a whole URL": PLAIN.replace(b"GET ", b"GET http://127.0.0.1").replace(b"-data", b"-data?x"),
    "a URL of another kind": PLAIN.replace(b"GET ", b"GET file://127.0.0.1"),
    "a URL of nobody": PLAIN.replace(b"GET ", b"GET http://"),
    "a URL that is none": PLAIN.replace(b"GET ", b"GET http://[::1"),
    "the way up": PLAIN.replace(b"gpu07", b"gpu08/../gpu07"),
    "the way up in code": PLAIN.replace(b"gpu07", b"gpu08/%2e%2e/gpu07"),
    "a slash in code": PLAIN.replace(b"gpu07/", b"gpu07%2f"),
    "a dot": PLAIN.replace(b"gpu07/", b"gpu07/./"),
    "a backslash": PLAIN.replace(b"gpu07/", b"gpu07\\"),
    "a parameter": PLAIN.replace(b"gpu07/", b"gpu07;x/"),
    "other letters": PLAIN.replace(b"gpu07", b"GPU07"),
    "a line of a proxy": b"PROXY TCP4 127.0.0.1 127.0.0.1 56324 80\r\n" + PLAIN,
    "a long header": PLAIN + b"X: " + b"y" * 8192 + b"\r\n",
    "many headers": PLAIN + b"X: y\r\n" * 2000,
    "many empty lines": b"\r\n" * 5000 + PLAIN,
}
LIES = (
    b"X-Forwarded-For: 10.0.0.7\r\n", b"X-Forwarded-For: 10.0.0.7, 127.0.0.1\r\n", b"Forwarded: for=10.0.0.7\r\n",
    b"X-Real-IP: 10.0.0.7\r\n", b"X-Client-IP: 10.0.0.7\r\n", b"True-Client-IP: 10.0.0.7\r\n", b"Via: 1.1 10.0.0.7\r\n",
)  # fmt: skip


@pytest.fixture
def server() -> Iterator[SeedServer]:
    with SeedServer(HERE, 0) as opened:
        opened.publish("gpu07", SEED, only_from=None, path="gpu07")
        yield opened


def ask(server: SeedServer, request: bytes) -> bytes:
    assert server._server is not None
    with socket.create_connection((HERE, server._server.server_address[1]), PATIENCE_S) as connection:
        received = b""
        try:
            connection.sendall(request)
            while content := connection.recv(4096):
                received += content
        except ConnectionError:  # it read no further than it wanted to
            pass
        return received


@pytest.mark.parametrize("kind", TAKEN)
def test_a_request_is_given_the_whole_file(server: SeedServer, kind: str) -> None:
    answer = ask(server, TAKEN[kind] + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nthe seed")
    assert server.wait_fetched("gpu07", PATIENCE_S)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_such_request_is_given_nothing(server: SeedServer, kind: str) -> None:
    answer = ask(server, REFUSED[kind] + b"\r\n")
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4") or answer.startswith(b"HTTP/1.1 5")
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert b"seed" not in answer
    assert server.fetched("gpu07") == frozenset()
    assert ask(server, PLAIN + b"\r\n").endswith(b"the seed")  # it goes on


@pytest.mark.parametrize("lie", LIES)
def test_a_peer_is_where_its_connection_comes_from(server: SeedServer, lie: bytes) -> None:
    server.publish("gpu07", SEED, only_from="10.0.0.7", path="gpu07")
    assert ask(server, PLAIN + lie + b"\r\n").startswith(b"HTTP/1.1 403 ")
    assert server.refused("gpu07") == {HERE}


def test_an_answer_says_nothing_of_us(server: SeedServer) -> None:
    head = ask(server, PLAIN + b"\r\n").partition(b"\r\n\r\n")[0]
    names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:]]
    assert names == [b"Content-Type", b"Content-Length", b"Cache-Control", b"Connection"]
