"""The program by which a host fetches, against servers of every kind: honest, slow, dead, lying, and cases of others
(public issue threads, named at each)."""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hostwright.apply.delivery import pulling
from hostwright.apply.delivery.looking import StoredFile
from hostwright.apply.delivery.pulling import Grant, HeldInput, Pulled, pull
from hostwright.common.errors import HostError, ProtocolError, Unreachable
from hostwright.stack.stack import Artifact
from tests.lab.sshd import free_port
from tests.unit.apply.delivery.hosts import CONTENT, LoopFleet, LoopHost, altered, artifact_of, fleet_of
from tests.unit.apply.delivery.oddserver import (
    TOKEN,
    answer,
    honest,
    odd_server,
    pulled_from,
    saying,
    start_of,
)
from tests.unit.support.hostjobs import until

N = len(CONTENT)


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopFleet]:
    with fleet_of(2, monkeypatch) as several:
        several.add()
        yield several


@pytest.fixture
def artifact(fleet: LoopFleet) -> Artifact:
    return fleet.artifacts()[0]


def faster(monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str]) -> None:
    """The program with other limits."""
    text = pulling.program()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    monkeypatch.setattr(pulling, "program", lambda: text)


def test_a_file_arrives_with_its_modes(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    with odd_server(honest(CONTENT)) as server:
        pulled = pulled_from(server, host, artifact, fleet.locate(artifact))
    assert pulled == Pulled("done", done_bytes=N)
    fleet.check(host)
    final = host.file(artifact)
    assert (stat.S_IMODE(final.stat().st_mode), stat.S_IMODE(final.parent.stat().st_mode)) == (0o644, 0o755)
    (request,) = server.requests
    assert request.startswith(f"GET /{artifact.sha256} HTTP/1.1\r\n".encode())
    assert f"Authorization: Bearer {TOKEN}\r\n".encode() in request


@pytest.mark.parametrize("begun", [0, 1, 1_000_000, N - 1])
def test_what_was_begun_is_continued(fleet: LoopFleet, host: LoopHost, artifact: Artifact, begun: int) -> None:
    """ansible 23182: begun anew after every interruption."""
    host.part(artifact, CONTENT[:begun])
    with odd_server(honest(CONTENT)) as server:
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).verdict == "done"
    assert server.ranges == [f"bytes={begun}-" if begun else ""]
    fleet.check(host)


def test_a_part_that_is_complete_asks_nobody(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    """darkhttpd 80, azul 2869: a range that begins at the end is answered in four ways."""
    host.part(artifact, CONTENT)
    assert pulled_from(Grant("192.0.2.1", 9, TOKEN), host, artifact, fleet.locate(artifact)).verdict == "done"
    fleet.check(host)


def test_a_part_that_is_too_long_is_begun_anew(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    host.part(artifact, CONTENT + b"x")
    with odd_server(honest(CONTENT)) as server:
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).verdict == "done"
    fleet.check(host)


def test_a_file_that_is_there_is_not_fetched(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    """ansible 19548: fetched again though it had its checksum."""
    path = host.file(artifact)
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert pulled_from(Grant("192.0.2.1", 9, TOKEN), host, artifact, fleet.locate(artifact)).verdict == "done"
    path.write_bytes(CONTENT[:-1] + b"x")
    pulled = pulled_from(Grant("192.0.2.1", 9, TOKEN), host, artifact, fleet.locate(artifact))
    assert pulled.verdict == "wrong"
    assert not path.exists()


@pytest.mark.parametrize("name", ["a b", "a'b", 'a"b', "$(touch x)", "-n", "`id`", "ü.run", "a;b", "*", "%s%d", "a\\"])
def test_odd_names(fleet: LoopFleet, host: LoopHost, name: str) -> None:
    artifact = artifact_of(CONTENT).model_copy(update={"file": name})
    path = fleet.folder / "source"
    path.write_bytes(CONTENT)
    with odd_server(honest(CONTENT)) as server:
        assert pulled_from(server, host, artifact, path).verdict == "done"
    assert host.file(artifact).read_bytes() == CONTENT


def test_a_wrong_file_never_gets_its_name(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    with odd_server(honest(b"x" * N)) as server:
        pulled = pulled_from(server, host, artifact, fleet.locate(artifact))
    assert pulled == Pulled("wrong", why=hashlib.sha256(b"x" * N).hexdigest())
    assert list(host.file(artifact).parent.iterdir()) == []


@pytest.mark.parametrize("proxy", ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_no_proxy_of_the_environment_is_used(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """curl 9773 and 2477, rancher system-agent 59: no_proxy does not understand networks."""
    with odd_server(saying(answer("403 Forbidden", b""))) as wrong, odd_server(honest(CONTENT)) as server:
        monkeypatch.setenv(proxy, f"http://127.0.0.1:{wrong.port}")
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).verdict == "done"
    assert wrong.requests == []


# Sources that fail: the part stays, and a word says how


def test_what_is_cut_short_is_no_success(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    """ansible 84825 and 68843: a truncated download counted as done."""
    with odd_server(saying(answer("200 OK", CONTENT[:1_000_000], length=N))) as server:
        pulled = pulled_from(server, host, artifact, fleet.locate(artifact))
    assert (pulled.verdict, pulled.word, pulled.done_bytes <= 1_000_000) == ("failed", "cut", True)
    assert host.part(artifact, CONTENT[:1_000_000]).stat().st_size == 1_000_000


def test_the_whole_file_in_answer_to_a_range_is_not_appended(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact
) -> None:
    """rustup 4710: a server that ignored the range."""
    part = host.part(artifact, CONTENT[:1000])
    with odd_server(saying(answer("200 OK", CONTENT))) as server:
        pulled = pulled_from(server, host, artifact, fleet.locate(artifact))
    assert (pulled.verdict, pulled.word) == ("failed", "status")
    assert part.read_bytes() == CONTENT[:1000]


def test_no_more_bytes_are_taken_than_are_missing(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    """A peer that sends without end."""
    sent = 0

    def endless(request: bytes, connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(answer("200 OK", CONTENT))
        while True:
            sent += connection.send(b"x" * 65536)

    with odd_server(endless) as server:
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).verdict == "done"
    fleet.check(host)
    assert sent < 32 << 20


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (answer("200 OK", b"", length=10**14), "size"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\nContent-Length: 3000000\r\n\r\n", "size"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "size"),
        (answer("403 Forbidden", b""), "status"),
        (answer("404 Not Found", b""), "status"),
        (answer("503 Service Unavailable", b""), "busy"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n\r\n", "answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000, "answer"),
        (b"\0" * 20_000, "answer"),
        (b"", "cut"),
        (b"HTTP/1.1 200", "cut"),
    ],
)
def test_what_is_no_answer_is_named(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact, said: bytes, word: str
) -> None:
    with odd_server(saying(said)) as server:
        pulled = pulled_from(server, host, artifact, fleet.locate(artifact))
    assert (pulled.verdict, pulled.word) == ("failed", word)
    assert not host.file(artifact).exists()


def test_nobody_there_is_a_failed_connection(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    pulled = pulled_from(Grant("127.0.0.1", free_port(), TOKEN), host, artifact, fleet.locate(artifact))
    assert (pulled.word, "Connection refused" in pulled.why) == ("connect", True)


def test_packets_that_are_dropped_are_waited_for_three_seconds(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact
) -> None:
    """dragonfly 1677: dead peers are dialled for half a minute. A full backlog drops packets, as firewalls do."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fill = [socket.socket() for _ in range(3)]
        for one in fill:
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(full.getsockname())
        pulled = pulled_from(Grant("127.0.0.1", full.getsockname()[1], TOKEN), host, artifact, fleet.locate(artifact))
        for one in fill:
            one.close()
    assert (pulled.word, "no answer within 3 s" in pulled.why) == ("connect", True)


def test_a_name_that_is_unknown_is_a_failed_connection(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    pulled = pulled_from(Grant("gpu99.invalid", 9, TOKEN), host, artifact, fleet.locate(artifact))
    assert pulled.word == "connect"


def test_an_address_of_ipv6(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    """curl 3713: brackets, scopes. Here an address is an address."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer("200 OK", CONTENT))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        grant = Grant("::1", listener.getsockname()[1], TOKEN)
        assert pulled_from(grant, host, artifact, fleet.locate(artifact)).verdict == "done"
    fleet.check(host)


def silent(request: bytes, connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(4096):
            pass


def test_a_source_that_says_nothing_is_left(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, odd_server(silent) as server:
        faster(patch, ("my $ANSWER_S = 15;", "my $ANSWER_S = 1;"))
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).word == "stalled"

    def stalls(request: bytes, connection: socket.socket) -> None:
        connection.sendall(answer("200 OK", CONTENT[:500_000], length=N))
        silent(request, connection)

    with monkeypatch.context() as patch, odd_server(stalls) as server:
        faster(patch, ("my $STALLED_S = 20;", "my $STALLED_S = 6;"))  # time for what is sent
        pulled = pulled_from(server, host, artifact, fleet.locate(artifact))
    assert pulled.word == "stalled"
    with odd_server(honest(CONTENT)) as server:
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).verdict == "done"
    assert server.ranges == ["bytes=500000-"]


def test_a_source_that_drips_is_left(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster(monkeypatch, ("my $WINDOW_S = 60;", "my $WINDOW_S = 2;"))

    def drips(request: bytes, connection: socket.socket) -> None:
        connection.sendall(answer("200 OK", b"", length=N))
        for number in range(N):
            connection.sendall(CONTENT[number : number + 1])
            time.sleep(0.01)

    with odd_server(drips) as server:
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).word == "slow"


def test_ten_cuts_are_not_the_end(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    def cuts(request: bytes, connection: socket.socket) -> None:
        start = start_of(request)
        head = f"Content-Range: bytes {start}-{N - 1}/{N}"
        status = "206 Partial Content" if start else "200 OK"
        connection.sendall(
            answer(status, CONTENT[start : start + 300_000], *([head] if start else []), length=N - start)
        )

    with odd_server(cuts) as server:
        verdicts = [pulled_from(server, host, artifact, fleet.locate(artifact)).verdict for _ in range(N // 300_000)]
    assert verdicts == ["failed"] * (len(verdicts) - 1) + ["done"]
    fleet.check(host)


# The host itself


def test_a_host_without_perl_says_so(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered(monkeypatch, "command -v perl", "command -v nope")
    pulled = pulled_from(Grant("192.0.2.1", 9, TOKEN), host, artifact, fleet.locate(artifact))
    assert (pulled.word, pulled.why) == ("perl", "it has no perl")


def test_a_place_that_cannot_be_written_to_is_the_hosts_own(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact
) -> None:
    (fleet.folder / "host 1").write_text("a file")
    with odd_server(honest(CONTENT)) as server, pytest.raises(HostError, match=r"cannot be written to .*: mkdir"):
        pulled_from(server, host, artifact, fleet.locate(artifact))


def test_a_link_in_the_place_of_the_part_is_not_followed(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    elsewhere = fleet.folder / "elsewhere"
    elsewhere.write_bytes(b"mine")
    host.part(artifact, b"").unlink()
    host.file(artifact).with_name(f"{artifact.file}.part").symlink_to(elsewhere)
    with odd_server(honest(CONTENT)) as server, pytest.raises(HostError, match="Too many levels of symbolic links"):
        pulled_from(server, host, artifact, fleet.locate(artifact))
    assert elsewhere.read_bytes() == b"mine"


def test_two_at_the_same_time_wait_for_each_other(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    """kraken 226: a piece was already being written. What an earlier connection left behind may fetch on."""
    go = threading.Event()

    def waits(request: bytes, connection: socket.socket) -> None:
        connection.sendall(answer("200 OK", CONTENT[:1000], length=N))
        go.wait(60)
        connection.sendall(CONTENT[1000:])

    verdicts: list[str] = []
    with odd_server(waits) as first, odd_server(honest(CONTENT)) as second:
        fetch = lambda server: verdicts.append(  # noqa: E731
            pulled_from(server, host, artifact, fleet.locate(artifact)).verdict
        )
        one = threading.Thread(target=fetch, args=(first,))
        one.start()
        part = host.file(artifact).with_name(f"{artifact.file}.part")
        until(lambda: part.exists() and part.stat().st_size == 1000, "it has begun")
        other = threading.Thread(target=fetch, args=(second,))
        other.start()
        go.set()
        one.join(60)
        other.join(60)
    assert verdicts == ["done", "done"]
    assert second.requests == []
    fleet.check(host)


def test_a_file_that_something_else_holds_for_ever_is_named(
    fleet: LoopFleet, host: LoopHost, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered(monkeypatch, "-ge 30", "-ge 1")
    folder = host.file(artifact).parent
    folder.mkdir(parents=True)
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(HostError, match="something else on it holds this file"):
            pulled_from(Grant("192.0.2.1", 9, TOKEN), host, artifact, fleet.locate(artifact))
    finally:
        os.close(held)


def test_nobody_wants_it_any_more(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    lifeline = HeldInput(TOKEN)

    def begins(request: bytes, connection: socket.socket) -> None:
        connection.sendall(answer("200 OK", CONTENT[:1000], length=N))
        lifeline.end()
        silent(request, connection)

    item = StoredFile.of(artifact, fleet.locate(artifact))
    with odd_server(begins) as server, host.connect() as shell:
        shell.run(":", timeout_s=60, failure="no root")
        pulled = pull(shell, item, server.grant, lifeline, progress=lambda _: None, cache=host.cache)
    assert pulled.verdict == "called off"
    assert not host.file(artifact).exists()


def test_a_connection_that_is_lost_ends_the_program_there(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    begun = threading.Event()

    def begins(request: bytes, connection: socket.socket) -> None:
        connection.sendall(answer("200 OK", CONTENT[:1000], length=N))
        begun.set()
        silent(request, connection)

    with odd_server(begins) as server:
        threading.Thread(target=lambda: begun.wait(60) and host.sessions[-1].close(), daemon=True).start()
        with pytest.raises(Unreachable, match="connection was lost"):
            pulled_from(server, host, artifact, fleet.locate(artifact))
        found = ["pgrep", "-f", f"-- 127.0.0.1 {server.port} "]
        until(lambda: subprocess.run(found, stdout=subprocess.DEVNULL, check=False).returncode, "the program ends")


def test_the_token_is_in_no_argument_of_any_program(fleet: LoopFleet, host: LoopHost, artifact: Artifact) -> None:
    seen: list[bytes] = []

    def looks(request: bytes, connection: socket.socket) -> None:
        for place in Path("/proc").glob("[0-9]*"):
            for kind in ("cmdline", "environ"):
                with suppress(OSError):
                    seen.append((place / kind).read_bytes())
        honest(CONTENT)(request, connection)

    with odd_server(looks) as server:
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).verdict == "done"
    assert any(b"127.0.0.1\0" in one and b"perl" in one for one in seen)
    assert not any(TOKEN.encode() in one for one in seen)


# What the host says is believed only as far as it can be


@pytest.mark.parametrize(
    ("said", "pulled"),
    [
        (b"at 5\nat 99999999999\nat 7\nalive\ndone\n", Pulled("done", done_bytes=N)),
        (b"at -5\nat x\ndone\n", Pulled("done", done_bytes=N)),
        (b"at 9\nfailed cut the end\n", Pulled("failed", "cut", "the end", done_bytes=9)),
        (b"failed cut " + b"x" * 100_000 + b"\n", None),
        (b"wrong \x1b[31m\n", Pulled("wrong", why="\N{REPLACEMENT CHARACTER}[31m")),
        (b"done\nat 5\n", Pulled("done", done_bytes=N)),
    ],
)
def test_what_a_host_says(fleet: LoopFleet, artifact: Artifact, said: bytes, pulled: Pulled | None) -> None:
    told: list[int] = []
    reader = pulling._Reader("gpu01", StoredFile.of(artifact, fleet.locate(artifact)), 0, told.append)
    for place in range(0, len(said), 4099):
        reader.feed(said[place : place + 4099])
    result = reader.pulled()
    if pulled is not None:
        assert result == pulled
    assert len(result.why) <= 300
    assert all(0 <= number <= N for number in told)
    assert told == sorted(told)


@pytest.mark.parametrize("said", [b"", b"hello\n", b"done", b"wrong\n", b"failed\n", b"done now\n", b"called\n"])
def test_what_makes_no_sense_is_refused(fleet: LoopFleet, artifact: Artifact, said: bytes) -> None:
    reader = pulling._Reader("gpu01", StoredFile.of(artifact, fleet.locate(artifact)), 0, lambda _: None)
    reader.feed(said)
    with pytest.raises(ProtocolError, match="cannot be parsed"):
        reader.pulled()
