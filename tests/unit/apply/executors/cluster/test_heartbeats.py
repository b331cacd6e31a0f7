"""Each worker is told how the run stands: at once where something changed for it, whatever another one does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from typing import Any, cast

import pytest

from hostwright.apply.executors.cluster.heartbeats import Heartbeats
from hostwright.apply.executors.cluster.messages import Go, Heartbeat
from tests.unit.support.gated import WAIT_S

W1, W2 = "tls://192.0.2.1:4000", "tls://192.0.2.2:4000"


class Client:
    """In the place of a cluster's client: ``hanging`` workers take nothing, ``lost`` ones raise."""

    def __init__(self) -> None:
        self.sent: SimpleQueue[tuple[str, Heartbeat]] = SimpleQueue()
        self.hanging: set[str] = set()
        self.lost: set[str] = set()
        self.go_on = threading.Event()

    def run(self, _: Callable[..., Any], *args: Any, workers: list[str], **__: Any) -> Mapping[str, Any]:
        (worker,) = workers
        if worker in self.hanging:
            assert self.go_on.wait(WAIT_S)
        if worker in self.lost:
            raise OSError("closed")
        self.sent.put((worker, args[1]))
        return {worker: True}


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def received() -> SimpleQueue[str]:
    return SimpleQueue()


@pytest.fixture
def heartbeats(client: Client, received: SimpleQueue[str]) -> Iterator[Heartbeats]:
    made = Heartbeats(cast("Any", client), "session", lambda _: Heartbeat(), lambda worker, _: received.put(worker))
    yield made
    client.go_on.set()
    made.end()


def test_a_worker_that_hangs_holds_up_no_other(
    heartbeats: Heartbeats, client: Client, received: SimpleQueue[str]
) -> None:
    client.hanging = {W1}
    heartbeats.know([W1, W2])
    heartbeats.poke()
    assert client.sent.get(timeout=WAIT_S) == (W2, Heartbeat())
    assert received.get(timeout=WAIT_S) == W2
    assert not heartbeats.wait_until_sent(0.0)
    client.go_on.set()
    assert heartbeats.wait_until_sent(WAIT_S)
    assert received.get(timeout=WAIT_S) == W1


def test_a_lost_worker_is_waited_for_no_longer_than_its_answer(heartbeats: Heartbeats, client: Client) -> None:
    client.lost = {W1}
    heartbeats.know([W1])
    heartbeats.poke(W1, "tls://192.0.2.7:1")  # nobody knows the second one
    assert heartbeats.wait_until_sent(WAIT_S)
    heartbeats.know([])
    heartbeats.poke(W1)
    assert heartbeats.wait_until_sent(0.0)


def test_without_a_change_only_workers_with_hosts_get_one(
    client: Client, received: SimpleQueue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostwright.apply.executors.cluster.heartbeats.HEARTBEAT_S", 0.01)
    words = {W1: Heartbeat(going={"a1": Go()}), W2: Heartbeat()}
    made = Heartbeats(cast("Any", client), "session", words.__getitem__, lambda worker, _: received.put(worker))
    made.know([W1, W2])
    assert {received.get(timeout=WAIT_S) for _ in range(5)} == {W1}
    made.end()
