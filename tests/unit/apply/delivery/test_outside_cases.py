"""Cases of others, from public issue threads; what is right was written down before they were tried, at the end."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import http.client
import os
import resource
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.apply.delivery.looking import StoredFile
from hostwright.apply.delivery.sources.servers import FileServer
from hostwright.apply.delivery.sources.settings import Ports
from hostwright.apply.events import FROM_HERE, OVER_SSH
from hostwright.common.errors import ArtifactError, HostError
from hostwright.transport.exchange import Ends
from tests.unit.apply.delivery.hosts import CONTENT, LoopFleet, LoopHost, fleet_of
from tests.unit.apply.delivery.oddserver import answer, honest, odd_server, pulled_from, saying
from tests.unit.apply.delivery.sources.simulated import Fleet, hosts
from tests.unit.support.hostjobs import until

N = len(CONTENT)


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopFleet]:
    with fleet_of(6, monkeypatch) as several:
        several.add()
        yield several


def refused(fleet: LoopFleet, host: LoopHost, *pieces: bytes, begun: int = 1000) -> str:
    """A server's answer that must not be taken: the part stays as it was; the word of the failure."""
    (artifact,) = fleet.artifacts()
    part = host.part(artifact, CONTENT[:begun])
    with odd_server(saying(*pieces)) as server:
        pulled = pulled_from(server, host, artifact, fleet.locate(artifact))
    assert pulled.verdict == "failed"
    assert part.read_bytes() == CONTENT[:begun]
    assert not host.file(artifact).exists()
    return pulled.word


def test_a_range_that_begins_earlier_than_asked_is_not_taken(fleet: LoopFleet, host: LoopHost) -> None:
    """xroche/httrack 198: a cache answers on block borders, and the file grew."""
    refused(fleet, host, answer("206 Partial Content", CONTENT[512:], f"Content-Range: bytes 512-{N - 1}/{N}"))


def test_a_range_at_another_place_of_the_same_length_is_not_taken(fleet: LoopFleet, host: LoopHost) -> None:
    """pypa/pip 14131: a 206 whose Content-Range begins elsewhere was appended."""
    refused(fleet, host, answer("206 Partial Content", CONTENT[1000:], f"Content-Range: bytes 2000-{N - 1}/{N}"))


def test_a_200_with_a_content_range_is_not_taken(fleet: LoopFleet, host: LoopHost) -> None:
    """modelscope_hub 50: a 200 that serves the range was taken for the whole file."""
    refused(fleet, host, answer("200 OK", CONTENT[1000:], f"Content-Range: bytes 1000-{N - 1}/{N}"))


def test_compressed_content_is_neither_asked_for_nor_taken(fleet: LoopFleet, host: LoopHost) -> None:
    """huggingface_hub 3778: Accept-Encoding made a CDN ignore the range."""
    (artifact,) = fleet.artifacts()
    packed = gzip.compress(CONTENT)
    with odd_server(saying(answer("200 OK", packed, "Content-Encoding: gzip"))) as server:
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).verdict == "failed"
        assert b"accept-encoding" not in server.requests[0].lower()


def test_content_of_unknown_length_is_not_taken(fleet: LoopFleet, host: LoopHost) -> None:
    """owncloud/client 2708: without a Content-Length an incomplete file was stored."""
    refused(fleet, host, b"HTTP/1.1 200 OK\r\n\r\n" + CONTENT, begun=0)


def test_chunks_of_a_middlebox_are_not_taken(fleet: LoopFleet, host: LoopHost) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {N}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    refused(fleet, host, head + b"%x\r\n" % N + CONTENT + b"\r\n0\r\n\r\n", begun=0)


def test_a_captive_portal_is_not_followed(fleet: LoopFleet, host: LoopHost) -> None:
    with odd_server(honest(CONTENT)) as elsewhere:
        redirect = answer("302 Found", b"", f"Location: http://127.0.0.1:{elsewhere.port}/login")
        refused(fleet, host, redirect, begun=0)
        assert elsewhere.requests == []
    refused(fleet, host, answer("200 OK", b"<html>please log in</html>"), begun=0)


def test_an_old_proxys_http_1_0_is_understood(fleet: LoopFleet, host: LoopHost) -> None:
    (artifact,) = fleet.artifacts()
    text = f"HTTP/1.0 200 OK\r\ncontent-length:{N}\r\n\r\n".encode() + CONTENT
    with odd_server(saying(text)) as server:
        assert pulled_from(server, host, artifact, fleet.locate(artifact)).verdict == "done"
    fleet.check(host)


def test_a_thousand_nodes_of_which_many_die_do_not_all_come_back_to_us() -> None:
    """dragonfly 3233: 3 GB to 1,300 nodes, massive back to source."""
    dead = {f"gpu{index:04}" for index in range(0, 1300, 7)}
    played = Fleet(hosts(1300), trouble=lambda host, source: "connect" if source in dead else "", stays_s=300.0).play()
    assert played.complete
    assert sum(played.copies.values()) <= 8


def test_nodes_that_vanish_are_waited_for_by_nobody() -> None:
    """kraken 293, spegel 1365: spot instances go away, and others keep dialling them."""
    played = Fleet(hosts(200), stays_s=5.0).play()  # shorter than a transfer: each goes in the middle of its uploads
    assert played.complete
    assert max(played.tries.values()) <= 2


def test_parts_of_a_peer_and_the_rest_from_us_make_one_file(fleet: LoopFleet, host: LoopHost) -> None:
    """dragonfly 1464: first from peers, then from the source: the sum could not be made."""
    (artifact,) = fleet.artifacts()

    def half(request: bytes, connection: socket.socket) -> None:
        connection.sendall(answer("200 OK", CONTENT[: N // 2], length=N))

    with odd_server(half) as peer:
        first = pulled_from(peer, host, artifact, fleet.locate(artifact))
    assert (first.verdict, first.word) == ("failed", "cut")
    with odd_server(honest(CONTENT)) as source:
        assert pulled_from(source, host, artifact, fleet.locate(artifact)).verdict == "done"
        assert source.ranges == [f"bytes={N // 2}-"]
    fleet.check(host)


def test_a_full_disk_is_its_own_hosts_fault(fleet: LoopFleet, host: LoopHost) -> None:
    """tribler 5319: a torrent stood still without a word when the disk was full."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    (artifact,) = fleet.artifacts()
    small = Path(host.cache)
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    try:
        with odd_server(honest(CONTENT)) as server, pytest.raises(HostError, match="No space left on device"):
            pulled_from(server, host, artifact, fleet.locate(artifact))
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_network_that_spoils_every_transfer_comes_to_an_end(
    fleet: LoopFleet, host: LoopHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """microsoft/WSL 12340: large downloads reliably corrupted."""
    (artifact,) = fleet.artifacts()
    right = fleet.locate(artifact)
    spoiled = fleet.folder / "spoiled"
    spoiled.write_bytes(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]))
    monkeypatch.setattr(
        FileServer,
        "_file",
        lambda self, given, asked, before=FileServer._file: before(self, _other(given, spoiled), asked),
    )
    with fleet.handout() as handout:
        delivery = fleet.deliver(host, handout)
        with pytest.raises(HostError, match=r"arrived damaged .* check the host's memory, disk and network"):
            delivery.wait([artifact])
        delivery.close()
    assert right.read_bytes() == CONTENT


def _other(given: object, path: Path) -> object:
    return dataclasses.replace(given, item=dataclasses.replace(given.item, path=path))  # type: ignore[attr-defined, type-var]


def test_a_transfer_that_is_spoiled_once_is_made_again(
    fleet: LoopFleet, host: LoopHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ansible-modules-core 3017: a wrong checksum was the end at once."""
    (artifact,) = fleet.artifacts()
    spoiled = fleet.folder / "spoiled"
    spoiled.write_bytes(b"x" * N)
    before, times = FileServer._file, iter([True])
    monkeypatch.setattr(
        FileServer,
        "_file",
        lambda self, given, asked: before(self, _other(given, spoiled) if next(times, False) else given, asked),
    )
    with fleet.handout() as handout:
        delivery = fleet.deliver(host, handout)
        delivery.wait([artifact])
        delivery.close()
    fleet.check(host)


def test_of_several_interfaces_the_one_of_the_connection_is_used(fleet: LoopFleet) -> None:
    """packer-plugin-vsphere 247: bound to one address, told another."""
    host = fleet.hosts[0]
    host.ends = Ends("127.0.3.3", host.address)
    with fleet.handout() as handout:
        delivery = fleet.deliver(host, handout)
        delivery.wait(fleet.artifacts())
        ((address, _),) = handout.server._servers
        with pytest.raises(OSError, match="refused"):
            port = next(iter(handout.server._servers.values())).server_address[1]
            socket.create_connection(("127.0.0.1", port), 5)
        delivery.close()
    assert address == "127.0.3.3"
    assert host.came == [{FROM_HERE: N}]


def test_two_hundred_strangers_at_a_peer_do_not_end_it(fleet: LoopFleet) -> None:
    """webtorrent 2968: a seeder crashed with 100 to 200 peers."""
    first, *others = fleet.hosts
    (artifact,) = fleet.artifacts()
    with fleet.handout() as handout:
        deliveries = [fleet.deliver(host, handout) for host in (first, *others)]
        for delivery in deliveries:
            delivery.wait([artifact])
        grant = next(g for host in fleet.hosts if (g := handout.peer_grant(host.name)))
        strangers = []
        for _ in range(200):
            try:
                strangers.append(socket.create_connection((grant.address, grant.port), 5))
                strangers[-1].sendall(b"GET /" + b"0" * 64)
            except OSError:
                continue
        late = LoopHost("late", "127.0.9.77", f"{fleet.folder}/late", Ends())
        path = fleet.locate(artifact)
        until(lambda: pulled_from(grant, late, artifact, path).verdict == "done", "the late one has it")
        for stranger in strangers:
            stranger.close()
        for delivery in deliveries:
            delivery.close()


def test_a_big_file_does_not_stay_in_memory(fleet: LoopFleet) -> None:
    """ansible 16391 and 29517: copying 5 GB took 6 GB of memory."""
    big = fleet.folder / "big.deb"
    with big.open("wb") as file:
        file.truncate(150_000_000)
    digest = hashlib.file_digest(big.open("rb"), "sha256").hexdigest()
    artifact = fleet.artifacts()[0].model_copy(
        update={"name": "big", "file": "big.deb", "sha256": digest, "size": 150_000_000}
    )
    fleet.files["big"] = (artifact, b"")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for host, way in ((fleet.hosts[0], True), (fleet.hosts[1], False)):
        with fleet.handout() as handout:
            if not way:
                host.ends = Ends()
            delivery = fleet.deliver(host, handout)
            delivery.wait([artifact])
            delivery.close()
        assert host.file(artifact).stat().st_size == 150_000_000
        assert {source for came in host.came for source in came} == {FROM_HERE if way else OVER_SSH}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # KiB


def test_content_that_never_changes_is_continued_whatever_the_validator_says(fleet: LoopFleet) -> None:
    """dormice 86: If-Range was ignored, and a changed file was mixed with its former self. A file by its sum cannot."""
    (artifact,) = fleet.artifacts()
    server = FileServer()
    try:
        grant = server.grant(StoredFile.of(artifact, fleet.locate(artifact)), "127.0.0.1", Ports(), "")
        connection = http.client.HTTPConnection("127.0.0.1", grant.port, timeout=60)
        headers = {"Authorization": f"Bearer {grant.token}", "Range": "bytes=5-", "If-Range": '"other"'}
        connection.request("GET", f"/{artifact.sha256}", headers=headers)
        got = connection.getresponse()
        assert (got.status, got.read()) == (206, CONTENT[5:])
    finally:
        server.close()


def test_a_file_that_was_truncated_here_is_said_to_be_ours(fleet: LoopFleet, host: LoopHost) -> None:
    (artifact,) = fleet.artifacts()
    with fleet.handout() as handout:
        fleet.locate(artifact).write_bytes(CONTENT[: N // 2])
        delivery = fleet.deliver(host, handout)
        with pytest.raises((ArtifactError, HostError)) as caught:
            delivery.wait([artifact])
        delivery.close()
    assert "run `invoke mirror` again" in str(caught.value)
