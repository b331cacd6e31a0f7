"""Who gets a file from whom: fleets of every size, hosts that fail and lie, and nobody who waits for ever."""

from __future__ import annotations

import math
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply.delivery.sources.sources import (
    CLOSED_PAIRS,
    CONTROLLER,
    COPIES,
    MOST_SERVING,
    UPLOADS,
    FileSources,
    Peer,
    SourceLimits,
    Ticket,
)
from tests.unit.apply.delivery.sources.simulated import REFUSED_S, START_S, TRANSFER_S, Fleet, hosts


def sent(fleet: Fleet) -> int:
    return sum(fleet.copies.values())


def four_copies(peers: Mapping[str, Peer], begin: Callable[[str], None]) -> FileSources:
    """Where this machine sends four copies, so that the fifth host is the first that waits for another."""
    return FileSources(peers, begin, SourceLimits(copies=4))


def chance(*parts: object) -> int:
    """A number that looks like chance, and is the same in each process."""
    return zlib.crc32(repr(parts).encode())


def rounds(number: int) -> int:
    """How many transfers follow on each other where all work: each host that serves takes two more."""
    had, after = 0, 0
    while had < number:
        had += min(had, MOST_SERVING) * UPLOADS or COPIES
        after += 1
    return after


@pytest.mark.parametrize("number", [1, 2, 4, 5, 8, 24, 100, 1000])
def test_this_machine_sends_so_many_copies_however_many_hosts_there_are(number: int) -> None:
    fleet = Fleet(hosts(number)).play()
    assert fleet.complete
    assert sent(fleet) == min(number, COPIES)
    assert fleet.rounds <= rounds(number) * (TRANSFER_S + START_S)
    assert max(most for peer, most in fleet.most.items() if peer != CONTROLLER or number <= 4) <= COPIES
    assert all(most <= UPLOADS for peer, most in fleet.most.items() if peer)


def test_each_of_several_files_is_sent_so_often() -> None:
    fleet = Fleet(hosts(24), files=("driver", "cuda", "cudnn")).play()
    assert fleet.complete
    assert set(fleet.copies) == {"driver", "cuda", "cudnn"}
    assert max(fleet.copies.values()) <= COPIES


def test_groups_take_nothing_from_each_other() -> None:
    racks = {**hosts(9, "a"), **hosts(9, "b")}
    fleet = Fleet(racks).play()
    assert fleet.complete
    assert sent(fleet) == 2 * COPIES
    assert all(source == CONTROLLER or source[0] == host[0] for host, source in fleet.tries)


def test_who_serves_nobody_gets_files_all_the_same() -> None:
    some = {**hosts(20), **{f"mean{number}": Peer("", 0) for number in range(20)}}
    fleet = Fleet(some).play()
    assert fleet.complete
    assert not any(source.startswith("mean") for _, source in fleet.tries)


def test_where_nobody_serves_this_machine_sends_to_all_and_to_so_many_at_once() -> None:
    fleet = Fleet(hosts(50, uploads=0)).play()
    assert fleet.complete
    assert sent(fleet) == 50
    assert fleet.most[CONTROLLER] == 16
    assert fleet.rounds == math.ceil(50 / 16) * TRANSFER_S


def test_servers_that_do_not_come_up_are_no_hope() -> None:
    fleet = Fleet(hosts(12), serves=lambda host: False).play()
    assert fleet.complete
    assert sent(fleet) == 12


def test_hosts_that_had_the_file_serve_it_once_somebody_wants_it() -> None:
    have = {f"gpu{index:04}": ("cuda",) for index in range(20)}
    fleet = Fleet(hosts(24), has=have, begins={f"gpu{index:04}": 5.0 for index in range(20, 24)}).play()
    assert fleet.complete
    assert sent(fleet) <= COPIES
    begun: list[str] = []
    sources = FileSources(hosts(24), begun.append)
    for host in have:
        sources.has(host, "cuda")
    assert begun == []  # nobody wants it


def test_a_firewall_around_every_host_costs_one_wait() -> None:
    """The first who try find out for all; a connection that is refused takes 3 s."""
    fleet = Fleet(hosts(24), trouble=lambda host, source: "connect" if source else "").play()
    assert fleet.complete
    assert sent(fleet) == 24
    assert max(fleet.tries[key] for key in fleet.tries) == 1
    tried = sum(tries for (_, source), tries in fleet.tries.items() if source)
    assert tried < COPIES * UPLOADS + CLOSED_PAIRS  # those that were under way when it was seen
    assert fleet.rounds <= TRANSFER_S * 3 + REFUSED_S + START_S


def test_one_peer_behind_a_firewall_is_left_after_two_hosts() -> None:
    fleet = Fleet(hosts(40), trouble=lambda host, source: "connect" if source == "gpu0000" else "").play()
    assert fleet.complete
    assert sent(fleet) == COPIES
    tried = [host for host, source in fleet.tries if source == "gpu0000"]
    assert len(tried) <= 2 * UPLOADS - 1  # two may be there at the same time


def test_one_host_that_reaches_no_other_blames_nobody() -> None:
    fleet = Fleet(hosts(40), trouble=lambda host, source: "connect" if source and host == "gpu0039" else "").play()
    assert fleet.complete
    assert sent(fleet) == COPIES + 1
    assert len({source for host, source in fleet.tries if host == "gpu0039" and source}) == 3
    used = Counter(source for host, source in fleet.tries if host != "gpu0039")
    assert all(used[source] for host, source in fleet.tries if host == "gpu0039")


@pytest.mark.parametrize("bad", [1, 3, 8])
def test_peers_that_lie_are_left_and_everybody_gets_the_file(bad: int) -> None:
    liars = {f"gpu{index:04}" for index in range(bad)}
    fleet = Fleet(hosts(60), trouble=lambda host, source: "wrong" if source in liars else "").play()
    assert fleet.complete
    for liar in liars:
        assert sum(tries for (_, source), tries in fleet.tries.items() if source == liar) <= 2 * UPLOADS


def test_a_source_that_failed_for_a_host_is_not_given_to_it_again() -> None:
    fleet = Fleet(hosts(30), trouble=lambda host, source: "cut" if source and chance(host, source) % 3 == 0 else "")
    fleet.play()
    assert fleet.complete
    assert all(tries == 1 for (_, source), tries in fleet.tries.items() if source)


def test_hosts_that_end_early_are_missed_by_nobody() -> None:
    fleet = Fleet(hosts(30), stays_s=1.0, begins={f"gpu{index:04}": index * 2.0 for index in range(30)}).play()
    assert fleet.complete


def test_one_after_the_other_each_gets_the_file_at_once() -> None:
    """A batch of one: no peer is ever there."""
    fleet = Fleet(hosts(10), stays_s=1.0, begins={f"gpu{index:04}": index * 100.0 for index in range(10)}).play()
    assert fleet.complete
    assert all(waited == TRANSFER_S for waited in fleet.waited_s.values())


def test_who_waited_long_enough_need_not_wait_for_slow_peers() -> None:
    sources = four_copies(hosts(5), lambda host: None)
    tickets = [sources.ask(host, "cuda") for host in hosts(5)]
    assert [ticket.source for ticket in tickets] == [CONTROLLER] * 4 + [None]
    assert not tickets[4].settled.is_set()
    sources.hurry(tickets[4])
    assert tickets[4].source == CONTROLLER
    sources.hurry(tickets[4])


def test_a_copy_that_was_not_taken_is_sent_to_the_next() -> None:
    sources = four_copies(hosts(6), lambda host: None)
    tickets = [sources.ask(host, "cuda") for host in hosts(6)]
    sources.ended(tickets[0])
    assert tickets[4].source == CONTROLLER
    assert not tickets[5].settled.is_set()


def test_the_end_of_a_run_tells_all_who_wait() -> None:
    sources = four_copies(hosts(6), lambda host: None)
    tickets = [sources.ask(host, "cuda") for host in hosts(6)]
    sources.stop()
    assert all(ticket.settled.is_set() for ticket in tickets)
    assert [ticket.source for ticket in tickets[4:]] == [None, None]
    late = sources.ask("gpu0005", "driver")
    assert late.settled.is_set()
    assert late.source is None
    for ticket in tickets[:4]:
        sources.done(ticket)


def test_a_host_that_leaves_is_told_and_forgotten() -> None:
    begun: list[str] = []
    sources = four_copies(hosts(6), begun.append)
    tickets = {host: sources.ask(host, "cuda") for host in hosts(6)}
    sources.leave("gpu0005")
    assert tickets["gpu0005"].settled.is_set()
    assert tickets["gpu0005"].source is None
    sources.done(tickets["gpu0000"])
    assert begun == ["gpu0000"]
    assert sources.needed("gpu0000")
    sources.leave("gpu0000")
    assert not sources.needed("gpu0000")
    sources.serving("gpu0000")
    assert tickets["gpu0004"].source is None
    sources.done(tickets["gpu0001"])
    sources.serving("gpu0001")
    assert tickets["gpu0004"].source == "gpu0001"


def test_a_host_that_goes_down_serves_again_when_it_is_back() -> None:
    begun: list[str] = []
    sources = four_copies(hosts(6), begun.append)
    tickets = {host: sources.ask(host, "cuda") for host in hosts(6)}
    sources.done(tickets["gpu0000"])
    sources.serving("gpu0000")
    assert tickets["gpu0005"].source == "gpu0000"
    sources.unable("gpu0000")
    sources.ended(tickets["gpu0005"])  # it was cut off, for which nobody is to blame
    again = sources.ask("gpu0005", "cuda")
    assert begun == ["gpu0000"]
    sources.able("gpu0000")
    assert begun == ["gpu0000", "gpu0000"]
    sources.serving("gpu0000")
    assert again.source == "gpu0000"


def test_a_host_that_the_run_comes_back_to_has_nothing_any_more() -> None:
    """A rebuild removes, installs and provisions: its disk is another one."""
    sources = four_copies(hosts(6), lambda host: None)
    tickets = {host: sources.ask(host, "cuda") for host in hosts(6)}
    sources.done(tickets["gpu0000"])
    sources.serving("gpu0000")
    sources.leave("gpu0000")
    sources.join("gpu0000")
    for host in ("gpu0004", "gpu0005"):
        sources.ended(tickets[host])
    assert not sources.needed("gpu0000")
    again = sources.ask("gpu0000", "cuda")
    assert not again.settled.is_set()  # others are getting it


def test_a_wish_that_is_given_up_is_told_and_forgotten() -> None:
    sources = four_copies(hosts(6), lambda host: None)
    tickets = [sources.ask(host, "cuda") for host in hosts(6)]
    for ticket in (tickets[4], tickets[0]):
        sources.cancel(ticket)
    assert tickets[4].settled.is_set()
    assert (tickets[4].source, tickets[0].source) == (None, CONTROLLER)  # that one is under way
    sources.ended(tickets[0])
    assert tickets[5].source == CONTROLLER


def test_few_hosts_serve_at_a_time_in_a_big_fleet() -> None:
    fleet = Fleet(hosts(1000)).play()
    busy = {source for _, source in fleet.tries if source}
    assert len(busy) <= MOST_SERVING


def test_a_wrong_file_counts_against_all_who_gave_parts_of_it() -> None:
    sources = four_copies(hosts(8), lambda host: None)
    tickets = {host: sources.ask(host, "cuda") for host in hosts(8)}
    for host in ("gpu0000", "gpu0001"):
        sources.done(tickets[host])
        sources.serving(host)
    first = tickets["gpu0004"]
    assert first.source == "gpu0000"
    sources.failed(first)
    sources.blame("gpu0004", ["gpu0001", "gpu0000"])
    again = sources.ask("gpu0004", "cuda")
    assert not again.settled.is_set()  # both are out, others are coming
    sources.done(tickets["gpu0002"])
    sources.serving("gpu0002")
    assert again.source == "gpu0002"


def test_threads_ask_at_the_same_time() -> None:
    """Real threads: each host asks, takes and reports; counts hold whatever the order was."""
    peers = hosts(40)
    sources = FileSources(peers, lambda host: threading.Thread(target=sources.serving, args=(host,)).start())
    taken: list[Ticket] = []

    def one(host: str) -> None:
        ticket = sources.ask(host, "cuda")
        assert ticket.settled.wait(60)
        taken.append(ticket)
        sources.done(ticket)

    threads = [threading.Thread(target=one, args=(host,)) for host in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(taken) == 40
    assert sum(ticket.source == CONTROLLER for ticket in taken) <= COPIES


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_happens_everybody_gets_every_file(data: st.DataObject) -> None:
    """Any fleet, any group, any trouble between any two, hosts that come late and leave early."""
    number = data.draw(st.integers(1, 30))
    peers = {
        f"h{index}": Peer(data.draw(st.sampled_from(("", "rack"))), data.draw(st.integers(0, 3)))
        for index in range(number)
    }
    seed = data.draw(st.integers(0, 10**6))
    share = data.draw(st.integers(0, 10))

    def trouble(host: str, source: str) -> str:
        if not source or chance(seed, host, source) % 10 >= share:
            return ""
        return ("connect", "cut", "wrong")[chance(source, seed) % 3]

    fleet = Fleet(
        peers,
        files=("a", "b"),
        trouble=trouble,
        begins={name: data.draw(st.floats(0, 60)) for name in peers},
        stays_s=data.draw(st.floats(0, 100)),
        takes=lambda host, source: 1 + chance(host, source, seed) % 20,
        serves=lambda host: chance(host, seed) % 7 > 0,
        at_once=data.draw(st.integers(1, 8)),
    ).play()
    assert fleet.complete
    assert all(most <= peers[source].uploads for source, most in fleet.most.items() if source)
    assert fleet.most[CONTROLLER] <= fleet.at_once
    for (host, source), tries in fleet.tries.items():
        if source:
            assert tries <= (1 if trouble(host, source) else 2)  # once, or once for each file
