"""Files to hosts by whichever way works: real programs and real HTTP on this machine, several hosts at once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext, suppress

import pytest

from hostwright.apply import events
from hostwright.apply.delivery import batch, looking
from hostwright.apply.delivery.delivery import Delivery
from hostwright.apply.delivery.fetch import SMALL_BYTES
from hostwright.apply.delivery.pulling import Grant
from hostwright.apply.delivery.sources import servers
from hostwright.apply.delivery.sources.handout import Handout
from hostwright.apply.delivery.sources.settings import FileSettings, Ports, Way
from hostwright.apply.delivery.sources.sources import COPIES
from hostwright.apply.events import FROM_HERE, OVER_SSH, PEER, VENDOR
from hostwright.common.errors import ArtifactError, HostError, Stopped
from hostwright.transport.exchange import Ends
from tests.lab.sshd import free_port
from tests.unit.apply.delivery.hosts import CONTENT, HERE, LoopFleet, LoopHost, altered, fleet_of
from tests.unit.apply.delivery.oddserver import honest, odd_server
from tests.unit.support.hostjobs import until
from tests.unit.support.runs import run_of

N = len(CONTENT)
PATIENCE_S = 60.0


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopFleet]:
    with fleet_of(8, monkeypatch) as hosts:
        yield hosts


def bring(
    fleet: LoopFleet, hosts: list[LoopHost], handout: Handout | None, settings: FileSettings | None = None
) -> None:
    """All files to these hosts at the same time, to the end."""
    deliveries = [fleet.deliver(host, handout, settings) for host in hosts]
    try:
        for delivery in deliveries:
            delivery.wait(fleet.artifacts())
    finally:
        for delivery in deliveries:
            delivery.close()
    for host in hosts:
        fleet.check(host)


def sources(fleet: LoopFleet) -> Counter[str]:
    """How many files came from where; those from other hosts together."""
    every = (source for host in fleet.hosts for came in host.came for source in came)
    return Counter("peer" if source.startswith(PEER) else source for source in every)


def programs(fleet: LoopFleet) -> list[int]:
    """The processes that fetch or serve files of these hosts."""
    found = subprocess.run(["pgrep", "-f", f"{fleet.folder}/host"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def test_hosts_fetch_from_this_machine_and_from_each_other(fleet: LoopFleet) -> None:
    fleet.add()
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)
        sent = handout.server.sent_bytes
    came = sources(fleet)
    assert came.total() == 8
    assert came[FROM_HERE] <= COPIES
    assert came["peer"] == 8 - came[FROM_HERE]
    assert sent == came[FROM_HERE] * N
    until(lambda: not programs(fleet), "nothing is left on hosts", PATIENCE_S)


def test_one_host_alone_serves_nobody(fleet: LoopFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.add()
    monkeypatch.setattr(servers.PeerServer, "run", lambda *_: pytest.fail("nobody wants anything of it"))
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts[:1], handout)
    assert fleet.hosts[0].came == [{FROM_HERE: N}]


def test_several_files_come_from_several_sources(fleet: LoopFleet) -> None:
    fleet.add()
    fleet.add(CONTENT[::-1], "driver")
    fleet.add(b"a key", "key")
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)
    came = sources(fleet)
    assert came[OVER_SSH] == 8  # the small one
    assert came[FROM_HERE] <= 2 * COPIES
    assert came.total() == 24


def test_what_is_there_is_not_brought_and_serves_others(fleet: LoopFleet) -> None:
    artifact = fleet.add()
    for host in fleet.hosts[:7]:
        host.file(artifact).parent.mkdir(parents=True)
        host.file(artifact).write_bytes(CONTENT)
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)
    assert sum(len(host.came) for host in fleet.hosts) == 1


def test_behind_a_jump_host_a_few_copies_go_over_ssh_and_the_rest_from_host_to_host(fleet: LoopFleet) -> None:
    fleet.add()
    for host in fleet.hosts:
        host.ends = Ends("", host.address)
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)
    came = sources(fleet)
    assert came[OVER_SSH] <= COPIES
    assert came["peer"] == 8 - came[OVER_SSH]


def test_where_nobody_reaches_anybody_all_is_sent_over_ssh(fleet: LoopFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall on this machine, and one on every host."""
    fleet.add()
    closed = free_port()
    asked: list[str] = []
    grant, peer = Handout.grant, Handout.peer_grant

    def unreached(handout: Handout, host: str, *rest: object) -> Grant | None:
        one = grant(handout, host, *rest)  # type: ignore[arg-type]
        if one:
            asked.append(host)
        return one and Grant(HERE, closed, one.token)

    def refused(handout: Handout, host: str) -> Grant | None:
        one = peer(handout, host)
        return one and Grant(one.address, closed, one.token)

    monkeypatch.setattr(Handout, "grant", unreached)
    monkeypatch.setattr(Handout, "peer_grant", refused)
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)
    assert sources(fleet) == {OVER_SSH: 8}
    assert max(Counter(asked).values()) == 1  # it is remembered
    assert len(asked) <= COPIES  # and after a few, nobody tries


def test_a_host_that_sees_us_come_from_elsewhere_does_not_try(
    fleet: LoopFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address is translated in between: what listens there is another machine."""
    fleet.add()
    monkeypatch.setattr(looking, "_SEEN", "echo via 10.9.9.9 40000 10.0.0.1 22")
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts[:1], handout)
        assert handout.server._servers == {}
    assert fleet.hosts[0].came == [{OVER_SSH: N}]
    with fleet.handout() as handout:  # unless the inventory knows better
        fleet.hosts[1].said.clear()
        delivery = fleet.deliver(fleet.hosts[1], handout)
        delivery.wait(fleet.artifacts())
        delivery.close()
    told = {fleet.hosts[2].name: FileSettings(address=HERE)}
    with fleet.handout(told) as handout:
        bring(fleet, fleet.hosts[2:3], handout)
    assert fleet.hosts[2].came == [{FROM_HERE: N}]


def test_an_address_and_ports_of_the_inventory(fleet: LoopFleet) -> None:
    fleet.add()
    port = free_port()
    told = {fleet.hosts[0].name: FileSettings(address="127.0.5.5", ports=Ports(port, port))}
    with fleet.handout(told) as handout:
        bring(fleet, fleet.hosts[:1], handout)
        assert list(handout.server._servers) == [("127.0.5.5", Ports(port, port))]
    assert fleet.hosts[0].came == [{FROM_HERE: N}]


def test_private_files_go_over_ssh_alone(fleet: LoopFleet) -> None:
    """Those that a stack calls private, and those that no stack has."""
    fleet.add(name="licence", private=True)
    fleet.add(CONTENT[::-1], "image")
    with fleet.handout() as handout:
        deliveries = [fleet.deliver(host, handout, private=("image",)) for host in fleet.hosts]
        for delivery in deliveries:
            delivery.wait(fleet.artifacts())
        assert handout.server._servers == {}
        assert [member.files for member in handout._entered.values()] == [[]] * 8
        for delivery in deliveries:
            delivery.close()
    assert sources(fleet) == {OVER_SSH: 16}


def test_hosts_that_take_no_part_are_pushed_to(fleet: LoopFleet) -> None:
    fleet.add()
    push = FileSettings(way="push")
    with fleet.handout({host.name: push for host in fleet.hosts}) as handout:
        bring(fleet, fleet.hosts, handout, push)
        assert handout.server._servers == {}
    bring(fleet, fleet.hosts, None, push)
    assert sources(fleet) == {OVER_SSH: 8}


def test_a_host_that_serves_nobody_is_asked_by_nobody(fleet: LoopFleet) -> None:
    fleet.add()
    mean = {host.name: FileSettings(uploads=0) for host in fleet.hosts[:4]}
    with fleet.handout(mean) as handout:
        bring(fleet, fleet.hosts, handout)
    served = {source for host in fleet.hosts for came in host.came for source in came}
    assert served.isdisjoint(PEER + host.name for host in fleet.hosts[:4])


def test_a_peer_that_is_killed_in_the_middle_is_replaced(fleet: LoopFleet) -> None:
    """Peers are slow here, so that all of them are in the middle of something when they die."""
    fleet.add()
    slow = {host.name: FileSettings(rate=1_000_000) for host in fleet.hosts}
    with fleet.handout(slow) as handout:
        deliveries = [fleet.deliver(host, handout) for host in fleet.hosts]
        until(lambda: from_peers(fleet), "a host fetches from another", PATIENCE_S)
        victims = [pid for pid in programs(fleet) if b"127.0.9." in cmdline(pid) and b"serve" not in cmdline(pid)]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for delivery in deliveries:
            delivery.wait(fleet.artifacts())
        for delivery in deliveries:
            delivery.close()
    for host in fleet.hosts:
        fleet.check(host)


def from_peers(fleet: LoopFleet) -> set[str]:
    """The hosts from which others fetch, or have fetched."""
    said = [event for host in fleet.hosts for event in host.said if isinstance(event, events.Delivering)]
    return {event.source.removeprefix(PEER) for event in said if event.source.startswith(PEER)}


def cmdline(pid: int) -> bytes:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
        return file.read()
    return b""


LIES = {
    "other bytes": (
        "syscall($SENDFILE, $one->{fd}, fileno($one->{file}), 0, $most)",
        "syswrite($one->{socket}, 'x' x $most)",
    ),
    "nothing after half": ("$one->{left} -= $n;", "exit 1 if ($one->{left} -= $n) < 1500000;"),
    "no such file": ("my $path = $path{$1};", "my $path;"),
    "no token is right": ("my ($one, $other) = @_;\n    return 0", "my ($one, $other) = @_;\n    return 0; return 0"),
    "another length": ("Content-Length: $left", "Content-Length: 99999999999"),
}


@pytest.mark.parametrize("lie", LIES)
def test_peers_that_lie_are_left_and_all_get_the_file(
    fleet: LoopFleet, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    fleet.add()
    old, new = LIES[lie]
    honest_text = servers.program()
    assert old in honest_text
    monkeypatch.setattr(servers, "program", lambda: honest_text.replace(old, new))
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)
    # what a peer sent before it ended was right, and its program is started again
    assert lie == "nothing after half" or sources(fleet)["peer"] == 0
    for host in fleet.hosts:
        fleet.check(host)


def test_a_host_that_says_it_has_what_it_has_not_harms_nobody(fleet: LoopFleet) -> None:
    artifact = fleet.add()
    with fleet.handout() as handout:
        liar, *others = fleet.hosts
        handout.enter(liar.name, liar.connection(), [str(liar.file(artifact))], lambda: None)
        handout.sources.has(liar.name, str(artifact.sha256))
        bring(fleet, others, handout)
    assert PEER + liar.name not in {source for host in others for came in host.came for source in came}


def test_the_end_of_a_run_ends_what_is_under_way(fleet: LoopFleet) -> None:
    """Ctrl-C: whoever waits is told, programs on hosts end, and what has arrived stays to be continued."""
    artifact = fleet.add()
    slow = {host.name: FileSettings(rate=1_000_000) for host in fleet.hosts}
    with fleet.handout(slow) as handout:
        deliveries = [fleet.deliver(host, handout) for host in fleet.hosts]
        until(lambda: from_peers(fleet), "a host fetches from another", PATIENCE_S)
        handout.stop()
        ended: list[str] = []
        for delivery in deliveries:
            with suppress(Stopped):
                delivery.wait([artifact])
                continue
            ended.append("stopped")
        assert ended
        for delivery in deliveries:
            assert not delivery.close()
    until(lambda: not programs(fleet), "nothing is left on hosts", PATIENCE_S)
    for host in fleet.hosts:
        if host.file(artifact).exists():
            assert host.file(artifact).read_bytes() == CONTENT
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)


def test_a_host_that_is_done_stays_connected_while_others_fetch_from_it(fleet: LoopFleet) -> None:
    fleet.add()
    slow = {host.name: FileSettings(rate=500_000) for host in fleet.hosts}
    with fleet.handout(slow) as handout:
        deliveries = {host.name: fleet.deliver(host, handout) for host in fleet.hosts}
        until(lambda: from_peers(fleet), "a host fetches from another", PATIENCE_S)
        serving = from_peers(fleet)
        kept = [name for name in serving if deliveries[name].close()]
        assert kept
        for name, delivery in deliveries.items():
            if name not in serving:
                delivery.wait(fleet.artifacts())
                delivery.close()
        until(lambda: not any(member.kept for member in handout._entered.values()), "no connection is kept", PATIENCE_S)
    assert sources(fleet)[FROM_HERE] <= COPIES
    until(lambda: not programs(fleet), "nothing is left on hosts", PATIENCE_S)


def test_a_host_that_reboots_is_fetched_from_by_nobody_until_it_is_back(fleet: LoopFleet) -> None:
    fleet.add()
    first, second = fleet.hosts[:2]
    with fleet.handout() as handout:
        delivery = fleet.deliver(first, handout)
        delivery.wait(fleet.artifacts())
        delivery.pause()
        other = fleet.deliver(second, handout)
        other.wait(fleet.artifacts())
        assert second.came == [{FROM_HERE: N}]
        delivery.start([])
        handout.resume(first.name)
        delivery.close()
        other.close()


def test_a_connection_that_is_lost_is_opened_again_and_goes_on(fleet: LoopFleet) -> None:
    host = fleet.hosts[0]
    host.ends = Ends()  # over SSH, so that it is this connection that matters

    def cut(event: events.Event) -> None:
        if isinstance(event, events.Delivering) and len(host.sessions) == 1 and event.done_bytes > 0:
            closing = threading.Thread(target=host.sessions[0].close, daemon=True)
            closing.start()
            closing.join(PATIENCE_S)  # or all of it has arrived before

    host.heard = cut
    big = os.urandom(20_000_000)
    fleet.add(big)
    with fleet.handout() as handout:
        bring(fleet, [host], handout)
    assert len(host.sessions) == 2
    again = [event for event in host.said if isinstance(event, events.Note) and event.text == "connected again"]
    after = host.said[host.said.index(again[0]) :]
    assert next(event.done_bytes for event in after if isinstance(event, events.Delivering)) > 0


def test_no_room_is_said_before_the_file_is_brought(fleet: LoopFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.add()
    monkeypatch.setattr(batch, "ROOM_BYTES", 10**18)
    delivery = fleet.deliver(fleet.hosts[0], None, FileSettings(way="push"))
    with pytest.raises(HostError, match=r"3 MB needed for 1 file, .* available; free disk space"):
        delivery.wait(fleet.artifacts())
    delivery.close()
    assert fleet.hosts[0].came == []


def test_a_file_that_is_not_here_is_said_by_the_role_that_needs_it(fleet: LoopFleet) -> None:
    cuda, driver = fleet.add(), fleet.add(CONTENT[::-1], "driver")
    fleet.locate(cuda).unlink()
    delivery = fleet.deliver(fleet.hosts[0], None, FileSettings(way="push"))
    delivery.wait([driver])
    with pytest.raises(ArtifactError, match="run `invoke mirror`"):
        delivery.wait([cuda])
    delivery.wait([])
    delivery.close()


def test_what_a_role_waits_for_comes_first(fleet: LoopFleet) -> None:
    """One file is on its way; of the rest, the one that is waited for is next."""
    names = ["first", "second", "third", "last"]
    for name in names:
        fleet.add(os.urandom(SMALL_BYTES), name)
    host, begun, going = fleet.hosts[0], threading.Event(), threading.Event()

    def hold(event: events.Event) -> None:
        if isinstance(event, events.Delivering) and event.artifact == "first.deb":
            begun.set()
            going.wait(PATIENCE_S)

    host.heard = hold
    delivery = fleet.deliver(host, None, FileSettings(way="push"))
    waiting = threading.Thread(target=delivery.wait, args=([fleet.files["last"][0]],))
    assert begun.wait(PATIENCE_S)
    waiting.start()
    until(lambda: delivery._batch and delivery._batch._files["last"].urgent, "the last is waited for", PATIENCE_S)
    until(lambda: delivery._batch and not delivery._batch._looking, "all are looked for", PATIENCE_S)
    going.set()
    waiting.join(PATIENCE_S)
    delivery.wait(fleet.artifacts())
    delivery.close()
    order = [event.artifact for event in host.said if isinstance(event, events.Delivering) and event.sent]
    assert order == ["first.deb", "last.deb", "second.deb", "third.deb"]


def took(host: LoopHost) -> list[bool]:
    """Of each file that came, whether it is told how long that took."""
    ends = (event for event in host.said if isinstance(event, events.Delivering) and event.sent)
    return [event.seconds > 0 for event in ends]


@pytest.mark.parametrize("way", ["pull", "push"])
def test_how_long_a_file_was_on_its_way_is_told_once_it_is_there(fleet: LoopFleet, way: Way) -> None:
    fleet.add()
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts[:1], handout if way == "pull" else None, FileSettings(way=way))
    host = fleet.hosts[0]
    assert took(host) == [True]
    on_the_way = [event for event in host.said if isinstance(event, events.Delivering) and not event.sent]
    assert on_the_way and not any(event.seconds for event in on_the_way)


def test_two_artifacts_that_are_one_file_come_once(fleet: LoopFleet) -> None:
    artifact = fleet.add()
    fleet.files["again"] = (artifact.model_copy(update={"name": "again"}), CONTENT)
    host = fleet.hosts[0]
    delivery = fleet.deliver(host, None, FileSettings(way="push"))
    delivery.wait(fleet.artifacts())
    delivery.close()
    assert host.came == [{OVER_SSH: N}]


def test_hosts_fetch_from_the_vendor_what_has_an_address_there(fleet: LoopFleet) -> None:
    direct = FileSettings(way="direct")
    with odd_server(honest(CONTENT)) as vendor:
        artifact = fleet.add(urls=[f"http://{HERE}:{vendor.port}/cuda.deb"])
        fleet.add(CONTENT[::-1], "own")
        fleet.locate(artifact).unlink()
        bring(fleet, fleet.hosts[:1], None, direct)
    assert sorted(fleet.hosts[0].came, key=str) == sorted([{VENDOR: N}, {OVER_SSH: N}], key=str)
    assert took(fleet.hosts[0]) == [True, True]
    for settings in (direct, FileSettings(way="push")):
        run = run_of(locate=lambda one: fleet.locate(one).resolve(strict=True))
        delivery = Delivery(fleet.hosts[0].connection(), run, settings, fleet.stack())
        with nullcontext() if settings == direct else pytest.raises(FileNotFoundError):
            delivery.check([artifact])


def test_hosts_without_perl_are_pushed_to_and_ask_no_peer(fleet: LoopFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.add()
    altered(monkeypatch, "command -v perl", "command -v no-such-perl")
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)
    assert sources(fleet) == {OVER_SSH: 8}


def test_hosts_that_cannot_serve_are_no_peers(fleet: LoopFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.add()
    monkeypatch.setattr(servers.PeerServer, "script", lambda *_: "echo cannot it has neither systemd nor setpriv")
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts, handout)
    assert sources(fleet) == {FROM_HERE: 8}


def test_a_controller_that_is_killed_leaves_nothing_on_hosts(fleet: LoopFleet) -> None:
    """kill -9: the connections end, and with them what runs there for us."""
    fleet.add()
    with ExitStack() as stack:
        handout = stack.enter_context(fleet.handout({host.name: FileSettings(rate=1_000_000) for host in fleet.hosts}))
        for host in fleet.hosts:
            fleet.deliver(host, handout)
        until(lambda: from_peers(fleet), "a host fetches from another", PATIENCE_S)
        for host in fleet.hosts:
            for session in host.sessions:
                session.close()  # all that a host sees of it
        until(lambda: not programs(fleet) or all_new(fleet), "what served is gone", PATIENCE_S)
        handout.stop()
    for host in fleet.hosts:
        if host.delivery:
            host.delivery.close()
    until(lambda: not programs(fleet), "nothing is left on hosts", PATIENCE_S)


def all_new(fleet: LoopFleet) -> bool:
    """Whether connections were opened again since: this process lives, after all."""
    return all(len(host.sessions) > 1 for host in fleet.hosts)


def test_a_peer_server_is_told_its_limits(fleet: LoopFleet) -> None:
    settings = FileSettings(uploads=3, rate=5_000_000, peer_ports=Ports(8480, 8489))
    text = servers.PeerServer("gpu01", ["/var/x/y"], settings, "hostwright-files-run-1").script("10.0.0.7")
    for line in ("uploads=3\n", "rate=5000000\n", "port=8480-8489\n", "address=10.0.0.7\n", "files=/var/x/y\n"):
        assert line in text
    assert "unit=hostwright-files-run-1\n" in text


@pytest.mark.parametrize(
    ("said", "port", "why"),
    [
        (b"serving 40000\n", 40000, ""), (b"serving 80\n", 0, ""), (b"serving 99999\n", 0, ""), (b"serving\n", 0, ""),
        (b"cannot it has no perl\n", 0, "it has no perl"), (b"serving 40000\nserving 40001\n", 40000, ""),
        (b"x" * 9999 + b"\nserving 40000\n", 40000, ""),
    ],
)  # fmt: skip
def test_what_a_peer_server_says(said: bytes, port: int, why: str) -> None:
    heard = servers._PortReader()
    ports = [heard.port(said[place : place + 7]) for place in range(0, len(said), 7)]
    assert sum(ports) == port
    assert heard.why == why


def test_the_server_of_a_run_is_gone_at_its_end(fleet: LoopFleet) -> None:
    fleet.add()
    with fleet.handout() as handout:
        bring(fleet, fleet.hosts[:1], handout)
        ((address, _), server) = next(iter(handout.server._servers.items()))
        port = int(server.server_address[1])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((address, port), PATIENCE_S)
