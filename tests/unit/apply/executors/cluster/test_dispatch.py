"""Which worker has which host: one at a time, whatever workers say and however they go."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.events import (
    Attached,
    Event,
    EventOrigin,
    HostEnded,
    Note,
    Observed,
    Rebooted,
    RoleFinished,
    RoleStarted,
    Waiting,
)
from hostwright.apply.executors.cluster.dispatch import AGAIN, Dispatch, HostAssignment
from hostwright.apply.executors.cluster.messages import Claim, Done, Go, Message, Reported
from hostwright.apply.executors.cluster.sealing import Mailbox
from hostwright.apply.host.outcome import Outcome
from hostwright.common.errors import ExecutorLost, HostError, Stopped
from hostwright.plan.model import Change, Plan, RolePlan, RoleResult, Step
from tests.unit.support.runs import run_of

CHANGE = Change("file /etc/motd", "absent", "there", (Step("true"),))
FIRST, EMPTY = Plan("gpu01", "hello", (RolePlan("hello", (), (CHANGE,)),)), Plan("gpu01", "hello")
BASE, HELLO = RoleResult("base", 0, 1.0), RoleResult("hello", 0, 2.0)
W1, W2, W3 = "tls://192.0.2.1:4000", "tls://192.0.2.2:4000", "tls://192.0.2.3:4000"


@dataclass
class Office:
    """A dispatch, all that it says and emits, and workers to speak for."""

    seen: list[Event] = field(default_factory=list)
    spoken: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    lost_words: dict[str, list[Message]] = field(default_factory=dict)
    mailbox: Mailbox = field(default_factory=Mailbox)

    def __post_init__(self) -> None:
        self.run = run_of(emit=self.seen.append)
        self.run.targets = SimpleNamespace(by_name=defaultdict(lambda: SimpleNamespace(stack=None)))  # type: ignore[assignment]
        self.dispatch = Dispatch(
            self.run,
            self.spoken.append,
            recover=lambda worker, _known: self.lost_words.get(worker, []),
        )
        self.futures: dict[str, Future[Outcome]] = {}

    def give(self, host: str = "gpu01", texts: tuple[str, ...] = (), keep: Any = lambda _: "") -> Future[Outcome]:
        self.run.keep = keep  # type: ignore[method-assign]
        future: Future[Outcome] = Future()
        self.dispatch.add(HostAssignment(host, future, lambda: self.send(host), texts))
        self.send(host)
        return future

    def send(self, host: str, workers: tuple[str, ...] = (W1, W2)) -> None:
        self.sent.append(host)
        self.dispatch.sent(host, workers)

    def say(self, body: Any, *, attempt: str = "a1", worker: str = W1, number: int = 0, host: str = "gpu01") -> None:
        message = body if isinstance(body, (Claim, Done)) else Reported(body)
        self.dispatch.take(Message(host, attempt, worker, number, "2027-01-01T00:00:00+00:00", message))

    def ask(self, attempt: str = "a1", worker: str = W1, host: str = "gpu01") -> None:
        name = "w1" if worker == W1 else "w2"
        self.say(Claim(name, self.mailbox.address), attempt=attempt, worker=worker, number=1, host=host)

    def told(self) -> list[str]:
        return [event.text for event in self.seen if isinstance(event, Note)]


def outcome(*results: RoleResult, reboots: int = 0, plan: Plan = EMPTY) -> Done:
    return Done(Outcome("gpu01", plan, results, EMPTY, reboots))


def test_a_worker_that_asks_may_begin_with_its_secrets_until_it_has_said_something():
    office = Office()
    office.give(texts=("hunter22",))
    assert office.dispatch.heartbeat(W1).going == {}
    office.ask()
    assert office.spoken == [W1]
    heartbeat = office.dispatch.heartbeat(W1)
    assert list(heartbeat.going) == ["a1"]
    assert office.mailbox.read(heartbeat.going["a1"].encrypted) == ("hunter22",)
    assert heartbeat.going["a1"].ended is None
    assert office.dispatch.heartbeat(W2).going == {}
    office.say(Observed("gpu01", FIRST), number=2)
    assert office.dispatch.heartbeat(W1).going == {"a1": Go()}


def test_events_are_passed_on_with_who_saw_them():
    office = Office()
    office.give()
    office.ask()
    office.say(Waiting("gpu01", "its answers"))
    office.say(Observed("gpu01", FIRST), number=2)
    assert office.seen == [
        Waiting("gpu01", "its answers", origin=EventOrigin(W1, "a1", 0)),
        Observed("gpu01", FIRST, origin=EventOrigin(W1, "a1", 2)),
    ]


def test_a_host_ends_as_its_worker_says():
    office = Office()
    future = office.give()
    office.ask()
    office.say(outcome(HELLO), number=2)
    assert future.result(0).word == "changed"
    assert office.seen == [HostEnded("gpu01", "changed", origin=EventOrigin(W1, "a1", 2))]
    assert office.dispatch.heartbeat(W1).going == {}


def test_an_error_of_the_host_is_the_futures_and_ends_it():
    office = Office()
    future = office.give()
    office.ask()
    office.say(Done(error=HostError("gpu01", "no room")), number=2)
    assert str(future.exception(0)) == "gpu01: no room"
    assert office.seen == []  # the loop of the run says how it ended


def test_the_stack_of_a_host_that_is_as_desired_is_kept_here():
    office, kept = Office(), []
    office.give(keep=lambda _: kept.append("hello") or "the disk is full")
    office.ask()
    office.say(outcome(HELLO), number=2)
    assert kept == ["hello"]
    assert office.told() == ["the disk is full"]
    pending = Done(Outcome("gpu01", FIRST, (), FIRST))
    second = Office()
    second.give(keep=lambda _: pytest.fail("it is not as desired"))
    second.ask()
    second.say(pending, number=2)


def test_what_came_twice_is_taken_once():
    office = Office()
    office.give()
    office.ask()
    for _ in range(2):
        office.say(Note("gpu01", "x"), number=2)
    assert office.told() == ["x"]


def test_a_host_whose_worker_was_lost_is_the_next_ones_and_the_first_is_heard_no_more():
    office = Office()
    future = office.give()
    office.ask()
    office.say(Observed("gpu01", FIRST), number=2)
    office.say(RoleFinished("gpu01", "base", BASE), number=3)
    office.say(Rebooted("gpu01", "kernel", 9.0), number=4)
    office.ask("a2", W2)
    assert office.told() == ["the worker w1 was lost; w2 continues"]
    assert office.dispatch.heartbeat(W1).going == {}
    assert office.dispatch.heartbeat(W1).leave == {"a1"}
    assert list(office.dispatch.heartbeat(W2).going) == ["a2"]
    office.say(Note("gpu01", "I live"), number=5)
    office.say(outcome(HELLO), number=6)
    assert not future.done()
    assert "I live" not in office.told()
    office.say(outcome(HELLO, reboots=1, plan=EMPTY), attempt="a2", worker=W2, number=2)
    result = future.result(0)
    assert (result.results, result.reboots, result.plan) == ((BASE, HELLO), 2, FIRST)


def test_a_successor_knows_which_jobs_ended_and_looks_after_all_others():
    office = Office()
    office.give()
    office.ask()
    for number, event in enumerate(
        [
            RoleStarted("gpu01", "base", 1, "job-base"),
            RoleFinished("gpu01", "base", BASE),
            RoleStarted("gpu01", "hello", 1, "job-hello"),
        ],
        start=2,
    ):
        office.say(event, number=number)
    office.ask("a2", W2)
    assert office.dispatch.heartbeat(W2).going["a2"].ended == {"job-base"}
    office.say(Attached("gpu01", "hello", 1, "job-hello"), attempt="a2", worker=W2, number=2)
    office.say(RoleFinished("gpu01", "hello", HELLO), attempt="a2", worker=W2, number=3)
    office.ask("a3", W1)
    assert office.dispatch.heartbeat(W1).going["a3"].ended == {"job-base", "job-hello"}


def test_a_host_that_a_lost_worker_had_finished_counts_as_changed():
    office = Office()
    future = office.give()
    office.ask()
    office.say(Observed("gpu01", FIRST), number=2)
    office.say(RoleFinished("gpu01", "hello", HELLO), number=3)
    office.ask("a2", W2)
    office.say(outcome(), attempt="a2", worker=W2, number=2)
    assert future.result(0).word == "changed"


def test_what_a_lost_worker_could_not_tell_any_more_is_told_before_its_successor_begins():
    office = Office()
    future = office.give()
    office.ask()
    told = [Observed("gpu01", FIRST), RoleFinished("gpu01", "hello", HELLO)]
    office.lost_words[W1] = [
        Message("gpu01", "a1", W1, number, "2027-01-01T00:00:00+00:00", Reported(event))
        for number, event in enumerate(told, start=2)
    ] + [Message("gpu01", "a0", W1, 9, "2027-01-01T00:00:00+00:00", Reported(Note("gpu01", "of another")))]
    office.say(told[0], number=2)
    office.ask("a2", W2)
    kinds = [type(event).__name__ for event in office.seen]
    assert kinds == ["Observed", "RoleFinished", "Note"]
    assert office.seen[-1].origin == EventOrigin(W1, "a1", 0)  # also where nothing of this attempt was heard
    office.say(outcome(), attempt="a2", worker=W2, number=2)
    assert future.result(0).results == (HELLO,)


def test_a_host_that_has_ended_is_touched_by_nobody_again():
    office = Office()
    future = office.give()
    office.ask()
    office.say(outcome(HELLO), number=2)
    office.ask("a2", W2)
    assert office.dispatch.heartbeat(W2).going == {}
    assert office.dispatch.heartbeat(W2).leave == {"a2"}
    office.say(outcome(), attempt="a2", worker=W2, number=2)
    assert future.result(0).results == (HELLO,)
    assert len(office.seen) == 1
    office.dispatch.task_ended("gpu01", None)
    assert office.sent == ["gpu01"]


def test_a_host_that_nobody_gave_away_is_let_go_of():
    office = Office()
    office.ask(host="gpu99")
    assert office.dispatch.heartbeat(W1).leave == {"a1"}


def test_a_worker_that_has_heard_is_not_told_again():
    office = Office()
    office.ask(host="gpu99")
    heartbeat = office.dispatch.heartbeat(W1)
    office.dispatch.heard(W1, heartbeat)
    assert office.dispatch.heartbeat(W1).leave == frozenset()


def test_a_worker_that_let_go_of_a_host_gives_it_to_another():
    office = Office()
    future = office.give()
    for number in range(AGAIN):
        office.ask(f"a{number}")
        office.dispatch.task_ended("gpu01", None)
    assert office.sent == ["gpu01"] * (AGAIN + 1)
    office.dispatch.task_ended("gpu01", None)
    assert office.sent == ["gpu01"] * (AGAIN + 1)
    assert "4 workers released this host, most recently w1" in str(future.exception(0))


def test_an_error_of_the_cluster_is_the_hosts():
    office = Office()
    future = office.give()
    office.dispatch.task_ended("gpu01", HostError("gpu01", "the cluster could not work on it"))
    assert "could not work" in str(future.exception(0))


def test_when_nobody_is_left_every_host_ends_with_the_reason():
    office = Office()
    futures = [office.give(host) for host in ("gpu01", "gpu02")]
    office.dispatch.lose("the scheduler was lost", "run again")
    for future in futures:
        error = future.exception(0)
        assert isinstance(error, ExecutorLost)
        assert isinstance(error, Stopped)
        assert (error.because, error.sentence) == ("the scheduler was lost", "the scheduler was lost; run again")


def test_a_cut_has_every_worker_leave_and_every_host_end():
    office = Office()
    one, two = office.give("gpu01"), office.give("gpu02")
    office.ask()
    office.dispatch.cut()
    assert office.dispatch.heartbeat(W1).leave == {"a1"}
    assert isinstance(one.exception(0), Stopped)
    assert isinstance(two.exception(0), Stopped)
    office.say(outcome(HELLO), number=2)
    assert office.seen == []


def test_a_password_goes_to_no_worker_without_tls():
    office = Office()
    future = office.give(texts=("hunter22",))
    office.ask(worker="tcp://192.0.2.1:4000")
    assert "is not connected by TLS" in str(future.exception(0))
    assert office.dispatch.heartbeat("tcp://192.0.2.1:4000").going == {}
    plain = Office()
    plain.give()
    plain.ask(worker="tcp://192.0.2.1:4000")
    assert list(plain.dispatch.heartbeat("tcp://192.0.2.1:4000").going) == ["a1"]


def test_workers_hear_that_the_run_stops():
    office = Office()
    office.give()
    office.ask()
    assert office.dispatch.heartbeat(W1).stopping is False
    office.run.stopping.set()
    assert office.dispatch.heartbeat(W1).stopping is True


def test_hosts_whose_workers_are_all_gone_are_given_to_others():
    office = Office()
    office.give()
    office.dispatch.strand({W1})
    assert office.sent == ["gpu01"]
    office.dispatch.strand({W3})
    assert office.sent == ["gpu01", "gpu01"]
    assert not office.dispatch.is_current("gpu01", 1)
    assert office.dispatch.is_current("gpu01", 2)


def lose_all(office: Office, number: int, *hosts: str) -> None:
    """Workers that took these hosts are gone, and so are all others that they were given to."""
    for host in hosts:
        office.ask(f"{host}-{number}", host=host)
    office.dispatch.strand({W3})


def test_a_host_that_four_workers_were_lost_with_is_given_up_with_a_sentence_that_says_so():
    office = Office()
    future = office.give()
    for number in range(AGAIN + 1):
        assert not future.done()
        lose_all(office, number, "gpu01")
    assert str(future.exception(0)) == (
        "gpu01: 4 workers were lost while they worked on this host, most recently w1; check their logs; a running job "
        "on the host continues; run again"
    )


def test_a_host_that_no_lost_worker_had_taken_is_not_given_up_with_those_that_they_had():
    office = Office()
    deadly, beside = office.give("gpu01"), office.give("gpu04")
    lose_all(office, 0, "gpu01", "gpu04")
    for number in range(1, AGAIN + 1):
        lose_all(office, number, "gpu01")
    assert "4 workers were lost while they worked on this host" in str(deadly.exception(0))
    assert not beside.done()
    office.ask("last", W2, host="gpu04")
    office.say(outcome(HELLO), attempt="last", worker=W2, number=2, host="gpu04")
    assert beside.result(0).results == (HELLO,)


def test_hosts_are_not_given_for_ever_to_workers_that_are_lost_before_they_take_any():
    office = Office()
    futures = [office.give(host) for host in ("gpu01", "gpu02")]
    for number in range(AGAIN + 1):
        lose_all(office, number)
    for future in futures:
        assert "4 workers were lost while they worked on this host" in str(future.exception(0))


def test_an_error_of_this_machine_ends_all():
    office = Office()
    future = office.give()
    office.dispatch.fail(BrokenPipeError())
    office.dispatch.fail(ZeroDivisionError())
    assert isinstance(future.exception(0), BrokenPipeError)


def test_a_secret_is_not_shown():
    assert "hunter22" not in repr(HostAssignment("gpu01", Future(), lambda: None, ("hunter22",)))
