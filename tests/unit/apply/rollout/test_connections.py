"""The connections of a run: those that are only being made can be let go, and nothing comes of them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hostwright.apply.rollout import connections as of_connections
from hostwright.apply.rollout.connections import CUT, Connections
from hostwright.apply.rollout.limits import LEFT_ALONE
from hostwright.common.errors import Stopped
from hostwright.transport import Allowance
from tests.unit.support.gated import WAIT_S


class Shell:
    closed = False

    def close(self) -> None:
        self.closed = True


class Host:
    """A target whose host answers once it may."""

    def __init__(self, name: str, *, answers: bool = True):
        self.name = name
        self.asked, self.may = threading.Event(), threading.Event()
        self.shells: list[Shell] = []
        self.allowance: Allowance | None = None
        if answers:
            self.may.set()

    def connect(self, _: object, allowance: Allowance) -> Shell:
        self.allowance = allowance
        self.asked.set()
        assert self.may.wait(WAIT_S)
        self.shells.append(Shell())
        return self.shells[-1]


def test_a_first_connection_that_is_being_made_is_let_go() -> None:
    connections, up, slow = Connections(), Host("up"), Host("slow", answers=False)
    connections.connect(up)  # type: ignore[arg-type]
    with ThreadPoolExecutor() as threads:
        made = threads.submit(connections.connect, slow)  # type: ignore[arg-type]
        assert slow.asked.wait(WAIT_S)
        assert connections.detach() == {"slow"}
        slow.may.set()
        with pytest.raises(Stopped, match=LEFT_ALONE):
            made.result()
    assert [shell.closed for shell in slow.shells] == [True]
    with pytest.raises(Stopped):
        connections.connect(slow)  # type: ignore[arg-type]
    assert connections.connect(up), "what was reached is waited for, and may be connected to again"  # type: ignore[arg-type]
    assert not up.shells[0].closed


def test_a_host_that_has_not_said_a_word_is_unheard_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_connections, "QUIET_S", 0.0)
    connections, up, slow, later = Connections(), Host("up"), Host("slow", answers=False), Host("later", answers=False)
    connections.connect(up)  # type: ignore[arg-type]
    with ThreadPoolExecutor() as threads:
        made = [threads.submit(connections.connect, host) for host in (slow, later)]  # type: ignore[arg-type]
        assert slow.asked.wait(WAIT_S)
        assert later.asked.wait(WAIT_S)
        assert connections.not_responding() == {"slow", "later"}
        monkeypatch.setattr(of_connections, "QUIET_S", 1e-9)
        assert later.allowance
        later.allowance.take(100)
        assert connections.not_responding() == {"slow"}
        for host in (slow, later):
            host.may.set()
        assert all(one.result() for one in made)
    assert connections.not_responding() == frozenset()


def test_all_connections_are_cut() -> None:
    connections, up = Connections(), Host("up")
    connections.connect(up)  # type: ignore[arg-type]
    connections.close()
    assert up.shells[0].closed
    with pytest.raises(Stopped, match=CUT):
        connections.connect(up)  # type: ignore[arg-type]
