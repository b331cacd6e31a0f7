"""A host that two take care of, one after the other without a pause, and one that nobody takes care of any more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.apply.delivery.looking import StoredFile
from hostwright.apply.delivery.sources.sources import SourceLimits
from hostwright.common.errors import Stopped
from hostwright.transport.exchange import Ends
from tests.unit.apply.delivery.hosts import LoopFleet, artifact_of, fleet_of

WAIT_S = 60.0


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopFleet]:
    with fleet_of(2, monkeypatch) as hosts:
        yield hosts


def test_who_had_a_host_before_takes_nothing_away_from_who_has_it_now(fleet: LoopFleet) -> None:
    ended: list[str] = []
    host = fleet.hosts[0]
    before, now = host.connection(), host.connection()
    with fleet.handout() as handout:
        handout.enter(host.name, before, [], lambda: ended.append("before"))
        handout.enter(host.name, now, [], lambda: ended.append("now"))
        assert ended == ["before"]
        assert not handout.leave(host.name, before)
        assert handout.sources.ask(host.name, "a" * 64).source is not None  # it still takes files
        assert not handout.leave(host.name, now)
        assert handout.sources.ask(host.name, "b" * 64).source is None
    assert ended == ["before"]


def test_a_host_that_waits_for_a_source_is_let_go_of_and_no_other(fleet: LoopFleet) -> None:
    fleet.add()
    with fleet.handout() as handout, ThreadPoolExecutor() as threads:
        handout.sources._limits = SourceLimits(at_once=0)  # nobody gets anything
        deliveries = [fleet.deliver(host, handout) for host in fleet.hosts]
        first, second = (threads.submit(delivery.wait, fleet.artifacts()) for delivery in deliveries)
        handout.cut(fleet.hosts[0].name)
        assert isinstance(first.exception(WAIT_S), Stopped)
        assert not second.done()
        handout.stop()
        assert isinstance(second.exception(WAIT_S), Stopped)
        assert [delivery.close() for delivery in deliveries] == [False, False]


@pytest.mark.parametrize(
    "address, ends, bound",
    [
        ("", Ends("127.0.0.1", "192.0.2.7"), True),
        ("", Ends("127.0.0.1", "127.0.7.7"), False),  # where each program has all addresses
        ("127.0.0.1", Ends("127.0.0.1", "192.0.2.7"), False),  # the host may come from another of its addresses
        ("127.0.0.1", Ends("", "192.0.2.7"), False),  # over a jump host
        ("127.0.0.1", Ends("", "gpu01.rack3"), False),
    ],
)
def test_a_token_is_bound_where_the_host_comes_the_way_of_its_connection(
    fleet: LoopFleet, tmp_path: Path, address: str, ends: Ends, *, bound: bool
) -> None:
    (tmp_path / "file").write_bytes(b"text")
    name = fleet.hosts[0].name
    with fleet.handout() as handout:
        handout._settings[name] = replace(handout._settings[name], address=address)
        grant = handout.grant(name, StoredFile.of(artifact_of(b"text"), tmp_path / "file"), ends, "")
        assert grant is not None
        assert [given.bound for given in handout.server._given] == [bound]
