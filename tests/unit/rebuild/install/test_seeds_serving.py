"""The seed server: who gets what, for how long; and that nothing of it is shown anywhere."""

from __future__ import annotations

import http.client
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hostwright.common.errors import HostwrightError, InputError
from hostwright.rebuild.install.seeds.rendering import Seed
from hostwright.rebuild.install.seeds.serving import SeedServer
from hostwright.transport.serving import answering
from hostwright.transport.serving.answering import HttpRequest
from tests.unit.support.seeds import KEYS

SEED = Seed({"user-data": KEYS.private.reveal().encode(), "meta-data": b"{}\n"}, "autoinstall", "user-data")
HERE = "127.0.0.1"
DEADLINE_S = 60.0


@pytest.fixture
def server() -> Iterator[SeedServer]:
    with SeedServer(HERE, 0) as opened:
        yield opened


def place(url: str) -> tuple[int, str]:
    """Port and path of a URL of the server."""
    port, _, path = url.removeprefix(f"http://{HERE}:").partition("/")
    return int(port), path


def ask(url: str, name: str, *, method: str = "GET") -> tuple[int, bytes]:
    port, path = place(url)
    return ask_for(port, f"/{path}/{name}", method=method)


def ask_for(port: int, target: str, *, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(HERE, port, timeout=DEADLINE_S)
    try:
        connection.request(method, target)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_seed_is_served_until_it_is_withdrawn(server: SeedServer) -> None:
    url = server.publish("gpu01", SEED, only_from=None)
    assert ask(url, "user-data") == (200, SEED.files["user-data"])
    assert server.wait_fetched("gpu01", DEADLINE_S)
    assert server.fetched("gpu01") == {"user-data"}
    assert server.withdraw("gpu01") == {"user-data"}
    assert ask(url, "user-data") == (404, b"")
    assert server.fetched("gpu01") == frozenset()
    server.withdraw("gpu01")


def test_the_url_is_known_before_the_seed_is(server: SeedServer) -> None:
    url = server.reserve("gpu01")
    assert ask(url, "user-data") == (404, b"")
    assert server.publish("gpu01", SEED, only_from=None) == url
    assert ask(url, "user-data")[0] == 200


def test_paths_cannot_be_guessed_and_never_come_again(server: SeedServer) -> None:
    paths = set()
    for number in range(50):
        paths.add(place(server.reserve(f"gpu{number}"))[1])
        server.withdraw(f"gpu{number}")
    assert len(paths) == 50
    assert min(map(len, paths)) >= 32


def test_only_exactly_what_is_published_is_found(server: SeedServer) -> None:
    port, path = place(server.publish("gpu01", SEED, only_from=None, path="seeds/gpu01"))
    assert path == "seeds/gpu01"
    assert ask_for(port, "/seeds/gpu01/meta-data") == (200, b"{}\n")
    others = ("/", "/seeds", "/seeds/", "/seeds/gpu01", "/seeds/gpu01/", "/seeds/gpu01/x")
    tricks = ("/seeds/gpu01/../gpu01/meta-data", "/seeds/gpu01/%6deta-data", "/seeds/gpu01/meta-data?x", "meta-data")
    for target in (*others, *tricks):
        assert ask_for(port, target) == (404, b""), target


def test_head_sends_no_content_and_fetches_nothing(server: SeedServer) -> None:
    url = server.publish("gpu01", SEED, only_from=None)
    assert ask(url, "meta-data", method="HEAD") == (200, b"")
    assert not server.wait_fetched("gpu01", 0.1, name="meta-data")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(server: SeedServer, method: str) -> None:
    assert ask(server.publish("gpu01", SEED, only_from=None), "user-data", method=method)[0] == 501


def test_only_the_host_may_fetch_its_seed(server: SeedServer) -> None:
    url = server.publish("gpu01", SEED, only_from="10.9.9.9")
    assert ask(url, "user-data") == (403, b"")
    assert server.refused("gpu01") == {HERE}
    assert server.fetched("gpu01") == frozenset()
    server.publish("gpu01", SEED, only_from="127.0.0.0/8")
    assert ask(url, "user-data")[0] == 200
    assert server.refused("gpu01") == frozenset()


def test_peers_over_ipv6_sockets_are_known_by_their_ipv4_address(server: SeedServer) -> None:
    url = server.publish("gpu01", SEED, only_from="10.0.0.7")
    target = f"/{place(url)[1]}/user-data"
    assert server.answer(HttpRequest(target, "::ffff:10.0.0.7")).status == 200
    assert server.answer(HttpRequest(target, "::ffff:10.0.0.8")).status == 403
    assert server.answer(HttpRequest(target, "fe80::1%eth0")).status == 403
    assert server.refused("gpu01") == {"10.0.0.8", "fe80::1"}


def test_hosts_do_not_get_each_others_seeds(server: SeedServer) -> None:
    first = server.publish("gpu01", SEED, only_from=None)
    second = server.publish("gpu02", Seed({"preseed.cfg": b"x"}, "auto", "preseed.cfg"), only_from=None)
    assert ask(second, "user-data")[0] == 404
    assert ask(first, "preseed.cfg")[0] == 404
    assert ask(second, "preseed.cfg") == (200, b"x")
    assert server.fetched("gpu01") == frozenset()
    with pytest.raises(InputError, match="gpu03 and gpu01 have the same path"):
        server.publish("gpu03", SEED, only_from=None, path=place(first)[1])


def test_waiting_ends_with_the_first_file(server: SeedServer) -> None:
    url = server.publish("gpu01", SEED, only_from=None)
    assert not server.wait_fetched("gpu01", 0.01)
    ask(url, "meta-data")
    assert server.wait_fetched("gpu01", DEADLINE_S, name="meta-data")
    assert not server.wait_fetched("gpu01", 0.01)
    results: list[bool] = []
    waiting = threading.Thread(target=lambda: results.append(server.wait_fetched("gpu01", DEADLINE_S)))
    waiting.start()
    ask(url, "user-data")
    waiting.join(DEADLINE_S)
    assert results == [True]


def test_waiting_ends_when_the_seed_is_withdrawn(server: SeedServer) -> None:
    server.publish("gpu01", SEED, only_from=None)
    results: list[bool] = []
    waiting = threading.Thread(target=lambda: results.append(server.wait_fetched("gpu01", DEADLINE_S)))
    waiting.start()
    server.withdraw("gpu01")
    waiting.join(DEADLINE_S / 2)
    assert results == [False]


def test_a_seed_that_is_published_again_counts_as_not_fetched(server: SeedServer) -> None:
    url = server.publish("gpu01", SEED, only_from=None)
    ask(url, "user-data")
    assert server.wait_fetched("gpu01", DEADLINE_S)
    assert server.publish("gpu01", SEED, only_from=None) == url
    assert server.fetched("gpu01") == frozenset()


def test_nothing_is_served_after_the_end() -> None:
    with SeedServer(HERE, 0) as server:
        port, _ = place(server.publish("gpu01", SEED, only_from=None))
    with pytest.raises(OSError, match=r"refused"):
        socket.create_connection((HERE, port), timeout=DEADLINE_S)
    with pytest.raises(HostwrightError, match="the seed server is not running"):
        server.reserve("gpu01")
    with SeedServer(HERE, port) as again:  # at once: no waiting for old connections
        assert place(again.reserve("gpu01"))[0] == port


def test_a_port_that_is_taken_and_an_address_of_others(server: SeedServer) -> None:
    port, _ = place(server.reserve("gpu01"))
    with (
        pytest.raises(
            HostwrightError, match=f"seeds cannot be served at {HERE}:{port}: another program uses this port"
        ),
        SeedServer(HERE, port),
    ):
        pass
    with pytest.raises(InputError, match="this machine does not have this address"), SeedServer("192.0.2.7", 0):
        pass


def test_a_peer_that_says_nothing_holds_up_nobody_and_is_dropped(
    server: SeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.publish("gpu01", SEED, only_from=None)
    with socket.create_connection((HERE, place(url)[0])) as silent:
        assert ask(url, "user-data")[0] == 200
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):  # it is still open
            silent.recv(1)
    monkeypatch.setattr(answering, "REQUEST_TIMEOUT_S", 0.3)
    with socket.create_connection((HERE, place(url)[0]), timeout=DEADLINE_S) as silent:
        assert silent.recv(1) == b""  # the server has closed it


def test_a_peer_that_speaks_too_slowly_is_dropped(server: SeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "REQUEST_LONGEST_S", 0.3)
    url = server.publish("gpu01", SEED, only_from=None)
    with socket.create_connection((HERE, place(url)[0]), timeout=0.02) as slow:
        end_s = time.monotonic() + DEADLINE_S
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while time.monotonic() < end_s:
                slow.sendall(b"G")
                with suppress(TimeoutError):
                    if slow.recv(1) == b"":
                        raise ConnectionResetError


def test_only_so_many_are_served_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "REQUESTS_AT_ONCE", 2)
    with SeedServer(HERE, 0) as server:
        url = server.publish("gpu01", SEED, only_from=None)
        silent = [socket.create_connection((HERE, place(url)[0]), timeout=DEADLINE_S) for _ in range(2)]
        assert ask(url, "user-data")[0] == 200
        assert silent[0].recv(1) == b""  # the oldest one gave up its place
        for one in silent:
            one.close()


def test_nothing_is_printed_or_logged(
    server: SeedServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = server.publish("gpu01", SEED, only_from=None)
    for name in ("user-data", "nothing"):
        ask(url, name)
    with socket.create_connection((HERE, place(url)[0]), timeout=DEADLINE_S) as rude:
        rude.sendall(b"\0\xff garbage \r\n\r\n")
        rude.recv(4096)
    captured = capfd.readouterr()
    assert captured.out + captured.err + caplog.text == ""
    assert KEYS.private.reveal().splitlines()[2] not in repr(vars(server))
