"""What workers keep of a run: they forget it when it is over, and are asked for it when it was left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from hostwright.apply.executors.cluster import takeover
from hostwright.apply.executors.cluster.cluster import ClusterExecutor
from hostwright.apply.executors.cluster.fitness import Cluster, Demands, this_machine
from hostwright.apply.executors.cluster.messages import Claim, Done, Message
from hostwright.apply.executors.cluster.sites import pack
from hostwright.apply.host.outcome import Outcome
from hostwright.common.errors import InputError
from hostwright.plan.model import Plan
from tests.unit.support.clusters import RUN, begun_on, fleet_of
from tests.unit.support.gated import WAIT_S

W1, W2 = "tls://192.0.2.1:4000", "tls://192.0.2.2:4000"
ADDRESS = "tls://192.0.2.9:8786"


class Client:
    """In the place of a cluster's client. The scheduler has not noticed yet that ``lost`` workers are gone."""

    def __init__(self) -> None:
        self.lost: set[str] = set()
        self.forgotten: dict[str, list[str]] = {}  #: of each run, the workers that were told to forget it
        self.hear: Callable[[tuple[float, Any]], None] = lambda _: None

    def get_executor(self, **_: object) -> Client:
        return self

    def submit(self, *_: object, **__: object) -> Future[Any]:
        return Future()

    def subscribe_topic(self, _: str, handler: Callable[[tuple[float, Any]], None]) -> None:
        self.hear = handler

    def unsubscribe_topic(self, _: str) -> None:
        self.hear = lambda _: None

    def register_plugin(self, *_: object, **__: object) -> None:
        """Every worker takes it."""

    unregister_worker_plugin = register_plugin

    def nthreads(self) -> Mapping[str, int]:
        return {W1: 1, W2: 1}

    def run(self, function: Callable[..., Any], *args: Any, workers: Any = (W1, W2), **_: Any) -> Any:
        there = [worker for worker in workers if worker not in self.lost]
        if function.__name__ == "forget":
            self.forgotten[args[0]] = there
        known = {"this_machine": this_machine(), "hear": True}
        return {worker: known.get(function.__name__, []) for worker in there}

    def say(self, worker: str, attempt: str, number: int, body: Claim | Done) -> None:
        message = Message("gpu01", attempt, worker, number, "2027-01-01T00:00:00.000+00:00", body)
        self.hear((0.0, message.packed()))


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client) -> Iterator[ClusterExecutor]:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    fleet = fleet_of(tmp_path / "site")
    archive = pack(fleet)
    cluster = Cluster(cast("Any", client), ADDRESS, Demands(this_machine()), archive, (), None)
    with ClusterExecutor(cluster, begun_on(fleet)) as executor:
        yield executor


def test_a_run_whose_journal_has_all_is_forgotten_also_where_a_worker_was_lost_just_now(
    executor: ClusterExecutor, client: Client
):
    future = executor.submit(lambda _: Outcome("gpu01", Plan("gpu01", "hello")), "gpu01")
    client.say(W1, "a1", 1, Claim("w1", b""))
    client.lost.add(W1)
    client.say(W2, "a2", 1, Claim("w2", b""))
    client.say(W2, "a2", 2, Done(Outcome("gpu01", Plan("gpu01", "hello"), (), Plan("gpu01", "hello"))))
    assert future.result(WAIT_S).word == "as desired"
    executor.shutdown()
    assert client.forgotten == {RUN.id: [W2]}


def test_a_scheduler_that_does_not_say_which_workers_there_are_is_not_one_without(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    """Nobody would be asked for what is missing, and workers that go on with hosts would not let go of them."""
    monkeypatch.setattr(takeover, "connected", lambda *_: nullcontext(client))
    assert takeover.left_behind(ADDRESS, RUN.id, {}) == []

    def silent() -> Mapping[str, int]:
        raise TimeoutError

    monkeypatch.setattr(client, "nthreads", silent)
    with pytest.raises(InputError, match=f"{ADDRESS} did not list its workers"):
        takeover.left_behind(ADDRESS, RUN.id, {})
