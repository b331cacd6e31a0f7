"""Strangers and slow peers at the seed server: whatever they hold open, the host that is installed gets its seed.

The attacks are those of slowhttptest and slowloris (slow headers, slow bodies, slow reading, many ranges), and what
other servers' issue threads have: silence, half-closed connections, pipelining, endless lines, smuggled requests.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from hostwright.rebuild.install.seeds.rendering import Seed
from hostwright.rebuild.install.seeds.serving import SeedServer
from hostwright.transport.serving import answering, places
from hostwright.transport.serving.places import Places, peer_name

HERE, HOST = "127.0.0.1", "127.0.7.7"
PATIENCE_S = 60.0
SEED = Seed({"user-data": b"the seed", "meta-data": b"{}"}, "", "user-data")

ATTACKS = {
    "nothing at all": b"",
    "one byte": b"G",
    "slow headers": b"GET /gpu07/user-data HTTP/1.1\r\nX-a: b\r\n",
    "slow body": b"POST /gpu07/user-data HTTP/1.1\r\nContent-Length: 1000000\r\n",
    "no line end": b"GET /" + b"x" * 4000,
    "many ranges": b"GET /gpu07/user-data HTTP/1.1\r\nRange: bytes=" + b"0-," * 1000,
    "pipelining": b"GET /gpu07/x HTTP/1.1\r\nConnection: keep-alive\r\n\r\n" * 40,
    "smuggling": b"POST / HTTP/1.1\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
    "tls": bytes.fromhex("1603010200010001fc0303") + b"\0" * 60,
    "many headers": b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(99)),
    "a header without end": b"GET / HTTP/1.1\r\nX: " + b"y" * 8000,
    "folded headers": b"GET / HTTP/1.1\r\nX: y\r\n" + b" z\r\n" * 90,
    "expecting to go on": b"GET / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n",
    "upgrade": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "nulls": b"\0" * 100,
    "empty lines": b"\r\n" * 50,
}


@pytest.fixture
def server() -> Iterator[SeedServer]:
    with SeedServer(HERE, 0) as opened:
        yield opened


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def port(server: SeedServer) -> int:
    assert server._server is not None
    return int(server._server.server_address[1])


def taken(server: SeedServer) -> tuple[int, int]:
    """The places that are taken by those who may fetch something, and by strangers."""
    assert server._server is not None
    return server._server.expected.taken, server._server.strangers.taken


def places_given(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each connection from now on, that it got a place: how long it kept that is another question."""
    given, take = [], Places.take

    def noted(places: Places, connection: socket.socket, peer: str) -> None:
        take(places, connection, peer)
        given.append(True)

    monkeypatch.setattr(Places, "take", noted)
    return given


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "it did not come about"
        time.sleep(0.005)


def fetch(server: SeedServer, *, source: str = HOST, name: str = "user-data", path: str = "gpu07") -> bytes:
    """The answer to a request from an address, whole; empty where the connection was closed."""
    with socket.create_connection((HERE, port(server)), PATIENCE_S, (source, 0)) as connection:
        try:
            connection.sendall(f"GET /{path}/{name} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
            return b"".join(iter(lambda: connection.recv(4096), b""))
        except ConnectionError:
            return b""


def ended(connection: socket.socket) -> bool:
    """Wait until the server has closed a connection."""
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def attack(server: SeedServer, connections: ExitStack, sources: list[str], content: bytes) -> list[socket.socket]:
    opened = []
    for source in sources:
        connection = connections.enter_context(socket.create_connection((HERE, port(server)), PATIENCE_S, (source, 0)))
        try:
            connection.sendall(content)
        except ConnectionError:  # closed at once
            continue
        opened.append(connection)
    return opened


@pytest.mark.parametrize("kind", ATTACKS)
def test_strangers_hold_no_place_of_the_host(server: SeedServer, connections: ExitStack, kind: str) -> None:
    server.publish("gpu07", SEED, only_from=HOST, path="gpu07")
    attack(server, connections, [f"127.1.{number}.1" for number in range(80)], ATTACKS[kind])
    until(lambda: taken(server)[1] <= answering.STRANGERS_AT_ONCE)
    assert taken(server)[0] == 0
    assert fetch(server).endswith(b"the seed")
    assert server.fetched("gpu07") == {"user-data"}


@pytest.mark.parametrize("kind", ATTACKS)
def test_where_anybody_may_fetch_one_peer_takes_few_places(
    server: SeedServer, connections: ExitStack, kind: str
) -> None:
    server.publish("gpu07", SEED, only_from=None, path="gpu07")
    attack(server, connections, ["127.1.1.1"] * 80, ATTACKS[kind])
    assert taken(server)[0] <= answering.REQUESTS_BY_PEER
    assert fetch(server).endswith(b"the seed")


@pytest.mark.parametrize("kind", ["nothing at all", "slow headers", "slow body"])
def test_where_anybody_may_fetch_many_peers_lose_to_the_next_one(
    server: SeedServer, connections: ExitStack, kind: str
) -> None:
    server.publish("gpu07", SEED, only_from=None, path="gpu07")
    opened = attack(server, connections, [f"127.1.{n % 200}.{1 + n // 200}" for n in range(100)], ATTACKS[kind])
    until(lambda: taken(server)[0] == answering.REQUESTS_AT_ONCE)
    assert fetch(server).endswith(b"the seed")
    assert ended(opened[0])  # the oldest one


def test_a_drip_is_closed_by_the_deadline(server: SeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "REQUEST_LONGEST_S", 0.3)
    given = places_given(monkeypatch)
    server.publish("gpu07", SEED, only_from=None, path="gpu07")
    with socket.create_connection((HERE, port(server)), PATIENCE_S) as slow:
        until(lambda: given == [True])
        with pytest.raises(ConnectionError):
            slow.sendall(b"GET /gpu07/user-data HTTP/1.1\r\n")
            while True:
                slow.sendall(b"X-a: b\r\n")
                time.sleep(0.01)
    until(lambda: taken(server) == (0, 0))


@pytest.mark.parametrize("line", [b"X: y\r\n", b" folded\r\n", b"y" * 100])
def test_a_request_without_end_is_cut_at_its_size(server: SeedServer, line: bytes) -> None:
    server.publish("gpu07", SEED, only_from=None, path="gpu07")
    with socket.create_connection((HERE, port(server)), PATIENCE_S) as endless:
        with pytest.raises(ConnectionError):
            for _ in range(100_000):
                endless.sendall(line)
        assert ended(endless)
    until(lambda: taken(server) == (0, 0))


def test_a_peer_that_reads_nothing_has_fetched_nothing(server: SeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "REQUEST_LONGEST_S", 2.0)  # time for the request
    given = places_given(monkeypatch)
    server.publish("gpu07", Seed({"user-data": bytes(32 * 2**20)}, "", "user-data"), only_from=None, path="gpu07")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((HERE, port(server)))
        slow.sendall(b"GET /gpu07/user-data HTTP/1.1\r\nHost: here\r\n\r\n")
        until(lambda: given == [True])
        until(lambda: taken(server) == (0, 0))
    assert server.fetched("gpu07") == frozenset()


def test_a_half_closed_connection_leaves_its_place(server: SeedServer) -> None:
    server.publish("gpu07", SEED, only_from=None, path="gpu07")
    for content in (b"", b"GET /gpu07/user", b"GET /gpu07/none HTTP/1.1\r\nX-a: b\r\n"):
        with socket.create_connection((HERE, port(server)), PATIENCE_S) as half:
            half.sendall(content)
            half.shutdown(socket.SHUT_WR)
            assert ended(half)
        until(lambda: taken(server) == (0, 0))
    assert server.fetched("gpu07") == frozenset()


def test_one_request_is_answered_on_a_connection(server: SeedServer) -> None:
    server.publish("gpu07", SEED, only_from=None, path="gpu07")
    with socket.create_connection((HERE, port(server)), PATIENCE_S) as both:
        both.sendall(
            b"".join(b"GET /gpu07/%b HTTP/1.1\r\nHost: here\r\n\r\n" % name for name in (b"meta-data", b"user-data"))
        )
        received = b"".join(iter(lambda: both.recv(4096), b""))
    assert received.count(b"200 OK") == 1
    assert server.fetched("gpu07") == {"meta-data"}


def test_who_fetched_first_is_the_only_one(server: SeedServer) -> None:
    server.publish("gpu07", SEED, only_from="127.0.0.0/8", path="gpu07")
    assert b" 404 " in fetch(server, source="127.0.9.9", name="none")  # which binds nobody
    assert b" 200 " in fetch(server)
    for name in SEED.files:
        assert b" 403 " in fetch(server, source="127.0.9.9", name=name)
    assert server.refused("gpu07") == {"127.0.9.9"}
    assert b" 200 " in fetch(server, name="meta-data")
    server.publish("gpu07", SEED, only_from="127.0.0.0/8", path="gpu07")  # another installation
    assert b" 200 " in fetch(server, source="127.0.9.9")


def test_addresses_of_one_ipv6_network_are_one_peer() -> None:
    names = [peer_name(address) for address in ("fd00::1", "fd00::ffff:1%eth0", "fd00:0:0:1::1", "::ffff:10.0.0.7")]
    assert names == ["fd00::/64", "fd00::/64", "fd00:0:0:1::/64", "10.0.0.7"]


def test_a_peer_with_most_places_gives_one_up() -> None:
    pairs, more = [socket.socketpair() for _ in range(4)], []
    ours = [pair[0] for pair in pairs]
    shared = Places(4, 3)
    try:
        for number in range(3):
            shared.take(ours[number], "10.0.0.1")
        shared.take(ours[3], "10.0.0.1")
        assert pairs[0][1].recv(1) == b""  # its own oldest
        shared.admit(ours[1])  # which is not ended for others any more
        for peer in ("10.0.0.2", "10.0.0.2", "10.0.0.3"):
            more.append(socket.socketpair())
            shared.take(more[-1][0], peer)
        assert pairs[2][1].recv(1) == b""  # the oldest of those with the most
        assert shared.taken == 4
        shared.leave(ours[0])
        places.hang_up(ours[0])
        assert shared.taken == 4
    finally:
        for pair in (*pairs, *more):
            for end in pair:
                end.close()
