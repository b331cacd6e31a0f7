"""A run's session on a worker: it asks before it begins, and lets go of hosts that nobody waits for."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from hostwright.apply.delivery.batch import served
from hostwright.apply.delivery.looking import StoredFile
from hostwright.apply.delivery.sources.handout import Handout
from hostwright.apply.delivery.sources.settings import FileSettings, Ports, read_file_settings
from hostwright.apply.events import Emit, Note
from hostwright.apply.executors.cluster import attempt as working
from hostwright.apply.executors.cluster import session as sessions
from hostwright.apply.executors.cluster.attempt import Attempt
from hostwright.apply.executors.cluster.messages import (
    Brief,
    Claim,
    Done,
    Go,
    Heartbeat,
    Message,
    Reported,
    Task,
    task_of,
    unsealed,
)
from hostwright.apply.executors.cluster.reporting import kept
from hostwright.apply.executors.cluster.sealing import encrypted_for
from hostwright.apply.executors.cluster.session import WorkerSession, hear
from hostwright.apply.executors.cluster.takeover import take_over
from hostwright.apply.host.connection import Patience
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.host.scheduling.pastruns import PastRuns
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.reading import Runs
from hostwright.apply.journal.writing import Journal
from hostwright.apply.run import Run
from hostwright.common.errors import ArtifactError, HostError, HostwrightError, Refused, Stopped, Unreachable
from hostwright.common.places import state_root
from hostwright.common.untrusted import Unforeseen
from hostwright.plan import desired
from tests.lab.sshd import free_port
from tests.unit.apply.delivery.hosts import artifact_of
from tests.unit.support.clusters import RUN, Worker, brief_of, fleet_of
from tests.unit.support.gated import WAIT_S
from tests.unit.support.hostjobs import until

HOST = {"ansible_host": "127.0.0.1", "ansible_timeout": 5}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(Patience.__init__, "__defaults__", (0.1, 0.1))


def at_work(tmp_path: Path, **shared: object) -> tuple[WorkerSession, Worker, Brief, Task, tuple[str, ...]]:
    """A session that was sent to a worker, and the task of a host that refuses connections."""
    fleet = fleet_of(tmp_path / "site", {"gpu01": HOST | {"ansible_port": free_port()}}, **shared)
    brief = brief_of(fleet)
    given, texts = task_of(brief.session, fleet.targets("gpu01")[0], None)
    session = pickle.loads(pickle.dumps(WorkerSession(brief)))  # noqa: S301 - as it is sent
    worker = Worker()
    worker.plugins[brief.session] = session
    session.setup(worker)
    return session, worker, brief, given, texts


def run(session: WorkerSession, given: Task, key: str = "task-1") -> threading.Thread:
    thread = threading.Thread(target=session.run, args=(given, key), daemon=True)
    thread.start()
    return thread


def asked(worker: Worker) -> tuple[str, Claim]:
    """The attempt that asks, and its question."""
    until(lambda: worker.said, "it asks", WAIT_S)
    message = worker.said[0]
    assert isinstance(message.body, Claim)
    return message.attempt, message.body


def test_nothing_is_done_before_the_word_and_what_came_of_it_is_told(tmp_path: Path):
    session, worker, brief, given, _ = at_work(tmp_path)
    thread = run(session, given)
    attempt, question = asked(worker)
    assert question.worker == "w1"
    assert worker.kinds == ["Claim"]
    assert hear(brief.session, Heartbeat(going={attempt: Go()}), worker) is True  # type: ignore[arg-type]
    thread.join(WAIT_S)
    assert worker.kinds[0] == "Claim"
    assert worker.kinds[-1] == "Done"
    done = worker.said[-1].body
    assert isinstance(done, Done)
    assert isinstance(done.error, Unreachable)
    assert "refuses the connection" in done.error.sentence
    assert worker.topics == {brief.session}
    assert repr(kept(RUN.id, {})) == repr([message for message in worker.said if message.number])


def test_the_states_of_hosts_that_ended_are_not_remembered(tmp_path: Path):
    """A step of a state may hold a secret, and the cache of what is asked holds the state."""
    session, worker, _, given, _ = at_work(tmp_path)
    thread = run(session, given)
    attempt, _ = asked(worker)
    session._roster().target(unsealed(given, ())[0]).desired.probes()
    assert desired._questions.cache_info().currsize
    session.hear(Heartbeat(going={attempt: Go()}))
    thread.join(WAIT_S)
    assert desired._questions.cache_info().currsize == 0


def test_a_secret_comes_with_the_word_and_a_letter_for_another_is_an_error(tmp_path: Path):
    session, worker, brief, given, texts = at_work(tmp_path, ansible_become_password="hunter22")
    assert texts == ("hunter22",)
    thread = run(session, given)
    attempt, question = asked(worker)
    hear(brief.session, Heartbeat(going={attempt: Go(encrypted_for(texts, question.mailbox))}), worker)  # type: ignore[arg-type]
    thread.join(WAIT_S)
    assert isinstance(worker.said[-1].body.error, Unreachable)  # type: ignore[union-attr]

    other = Worker()
    session.setup(other)  # another worker, with another mailbox
    thread = run(session, given)
    attempt, _ = asked(other)
    session.hear(Heartbeat(going={attempt: Go(encrypted_for(texts, question.mailbox))}))
    thread.join(WAIT_S)
    error = other.said[-1].body.error  # type: ignore[union-attr]
    assert isinstance(error, Unforeseen)
    assert error.sentence.startswith("on the worker w1: ")
    assert "hunter22" not in str(error)


def test_a_worker_that_would_do_something_else_refuses(tmp_path: Path):
    session, worker, _, given, _ = at_work(tmp_path)
    place = next((state_root() / "sites").iterdir())
    role = place / "roles/hello/__init__.py"
    role.write_text(role.read_text().replace("v.text", '"something else"'))
    thread = run(session, given)
    session.hear(Heartbeat(going={asked(worker)[0]: Go()}))
    thread.join(WAIT_S)
    error = worker.said[-1].body.error  # type: ignore[union-attr]
    assert isinstance(error, Refused)
    assert "the worker w1 and this machine compute different desired states for this host" in error.sentence
    assert worker.kinds == ["Claim", "Done"]


def test_an_attempt_that_must_leave_ends_without_a_word(tmp_path: Path):
    session, worker, _, given, _ = at_work(tmp_path)
    thread = run(session, given)
    session.hear(Heartbeat(leave=frozenset({asked(worker)[0]})))
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert worker.kinds == ["Claim"]
    assert session.empty(0)


@pytest.mark.parametrize("way", ["teardown", "released", "lease"])
def test_a_host_that_nobody_waits_for_is_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way):
    if way == "lease":
        monkeypatch.setattr(sessions, "LEASE_S", 5.0)  # time for its question
    session, worker, _, given, _ = at_work(tmp_path)
    thread = run(session, given)
    asked(worker)
    if way == "teardown":
        session.teardown(worker)  # type: ignore[arg-type]
    elif way == "released":
        session.transition("another", "executing", "released")
        session.transition("task-1", "ready", "executing")
        assert not session.empty(0.1)
        session.transition("task-1", "executing", "released")
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert worker.kinds == ["Claim"]


@pytest.mark.parametrize("ended", [True, False])
def test_what_a_worker_did_unheard_is_in_the_journal_once_it_was_made_to_leave(tmp_path: Path, ended):
    """Whether its work on the host had come to an end or not."""
    header = RunHeader(
        RUN.id, "provision", ("gpu01",), "inventory", {"scheduler": "tls://a:1"}, began="2027-01-01T00:00:00+00:00"
    )
    Journal.begin(state_root(), header, secrets=[], on_trouble=pytest.fail).close()
    session, worker, _, given, _ = at_work(tmp_path)
    thread = run(session, given)
    attempt, _ = asked(worker)
    if ended:
        session.hear(Heartbeat(going={attempt: Go()}))
        thread.join(WAIT_S)

    def ask(run: str, known: Mapping[str, int]) -> list[Message]:
        told = asyncio.run(sessions.leave(run, known, worker))  # type: ignore[arg-type]
        return pickle.loads(pickle.dumps(told))  # type: ignore[no-any-return]  # noqa: S301 - as it is sent

    runs = Runs(state_root())
    told = [message for message in worker.said if message.number > 1]  # what it asked is no record
    assert take_over(runs.find(RUN.id), ask, secrets=[], warn=pytest.fail) == len(told)
    thread.join(WAIT_S)
    assert [host.result for host in runs.load(RUN.id).hosts] == ["unreachable" if ended else "untouched"]
    assert take_over(runs.find(RUN.id), ask, secrets=[], warn=pytest.fail) == 0
    assert not thread.is_alive()


def test_words_keep_a_host_for_as_long_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(sessions, "now_s", lambda: now[0])
    monkeypatch.setattr(sessions, "LEASE_S", 0.05)
    session, worker, _, given, _ = at_work(tmp_path)
    thread = run(session, given)
    asked(worker)
    for _ in range(5):
        session.hear(Heartbeat())
        assert not session.empty(0.1)  # twice the lease by the real clock, and none by that of the session
    now[0] += 0.06
    thread.join(WAIT_S)
    assert not thread.is_alive()


def test_a_run_that_stops_is_known_to_those_who_begin_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session, worker, _, given, _ = at_work(tmp_path)
    session.hear(Heartbeat(stopping=True))
    stopped: list[Attempt] = []
    own = Attempt.stop

    def stop(self: Attempt) -> None:
        stopped.append(self)
        own(self)

    monkeypatch.setattr(Attempt, "stop", stop)
    thread = run(session, given)
    session.hear(Heartbeat(stopping=True, leave=frozenset({asked(worker)[0]})))
    thread.join(WAIT_S)
    assert len(stopped) == 1


class Files:
    """In the place of what hands out files: what it is told to do."""

    def __init__(self, run: str, settings: Mapping[str, FileSettings], emit: Emit):
        self.settings, self.emit = settings, emit
        self.did: list[str] = []
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.did.append("stop")
        self.stopped.set()

    def cut(self, host: str) -> None:
        self.did.append(f"cut {host}")

    def close(self) -> None:
        self.did.append("close")


@pytest.fixture
def handouts(monkeypatch: pytest.MonkeyPatch) -> list[Files]:
    made: list[Files] = []

    def make(run: str, settings: Mapping[str, FileSettings], emit: Emit) -> Files:
        made.append(Files(run, settings, emit))
        return made[-1]

    monkeypatch.setattr(sessions, "Handout", make)
    return made


def attempts(session: WorkerSession, number: int) -> list[str]:
    """So many attempts, once they are there."""
    until(lambda: len(session._now()) == number, f"{number} attempts", WAIT_S)
    return [attempt.id for attempt in session._now()]


def test_files_are_handed_out_for_as_long_as_a_worker_has_hosts(tmp_path: Path, handouts: list[Files]):
    session, _, brief, given, _ = at_work(tmp_path)
    run(session, given, "task-1")
    attempts(session, 1)
    run(session, given, "task-2")
    first, second = attempts(session, 2)
    (files,) = handouts
    assert files.settings == brief.files
    session.hear(Heartbeat(leave=frozenset({first})))
    attempts(session, 1)
    assert files.did == []
    session.hear(Heartbeat(leave=frozenset({second})))
    assert session.empty(WAIT_S)
    thread = run(session, given, "task-3")
    (third,) = attempts(session, 1)
    assert len(handouts) == 2  # what served before is over, and serves nothing again
    session.hear(Heartbeat(stopping=True))
    session.hear(Heartbeat(stopping=True, leave=frozenset({third})))
    assert handouts[1].stopped.wait(WAIT_S)
    thread.join(WAIT_S)
    assert files.did == ["close"]
    assert sorted(handouts[1].did) == ["close", "stop"]


def test_past_runs_are_read_once_for_all_hosts_of_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session, worker, _, given, _ = at_work(tmp_path)
    seen: list[PastRuns] = []

    def apply(run: Run, name: str, **_: object) -> Outcome:
        seen.append(run.past)
        raise HostError(name, "enough was seen")

    monkeypatch.setattr(working, "apply_to", apply)
    for _ in range(2):
        worker.said.clear()
        thread = run(session, given)
        session.hear(Heartbeat(going={asked(worker)[0]: Go()}))
        thread.join(WAIT_S)
    assert len(seen) == 2
    assert seen[0] is seen[1]


@pytest.mark.parametrize("way", ["pull", "push"])
def test_a_host_fetches_its_files_from_the_worker_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way):
    session, worker, _, given, _ = at_work(tmp_path, artifacts=way, hostwright_files_address="192.0.2.1")
    seen: list[tuple[Run, Handout | None]] = []

    def apply(run: Run, name: str, **_: object) -> Outcome:
        seen.append((run, session._handout))
        raise HostError(name, "enough was seen")

    monkeypatch.setattr(working, "apply_to", apply)
    thread = run(session, given)
    session.hear(Heartbeat(going={asked(worker)[0]: Go()}))
    thread.join(WAIT_S)
    ((begun, handout),) = seen
    assert handout is not None
    assert begun.handout is handout
    artifact = artifact_of(b"content")
    assert served(begun, read_file_settings(begun.targets[0].host), "gpu01", artifact) is (way == "pull")
    item = StoredFile(artifact, tmp_path, str(artifact.sha256), 7)
    with pytest.raises(
        HostwrightError, match="file server of this run is closed"
    ):  # and after the last host nothing is served
        handout.server.grant(item, "127.0.0.1", Ports(), "127.0.0.1")


def test_why_a_worker_serves_nothing_is_told_with_its_name(tmp_path: Path, handouts: list[Files]):
    session, worker, _, given, _ = at_work(tmp_path)
    thread = run(session, given)
    attempt, _ = asked(worker)
    handouts[0].emit(Note("", "no port of 8470-8479 is free"))
    session.hear(Heartbeat(leave=frozenset({attempt})))
    thread.join(WAIT_S)
    handouts[0].emit(Note("", "nobody is there to tell it"))
    (note,) = [message.body.event for message in worker.said if isinstance(message.body, Reported)]
    assert note == Note("", "on the worker w1: no port of 8470-8479 is free")


def test_leaving_in_the_middle_cuts_the_connections_and_tells_nothing_more(tmp_path: Path):
    session, worker, _, given, _ = at_work(tmp_path)
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Attempt):
        def _work(self, heartbeat: Go):
            connections = self._connecting(None)
            begun.set()
            assert go_on.wait(WAIT_S)
            connections.connect(session._roster().target(unsealed(given, ())[0]))

    attempt, files = Slow(session._place, given), Files("", {}, session._tell)
    raised: list[BaseException] = []
    end = attempt._reporter.end
    attempt._reporter.end = lambda outcome, error: (raised.append(error), end(outcome, error))[1]  # type: ignore[method-assign, func-returns-value, arg-type]
    thread = threading.Thread(target=attempt.run, args=(files,), daemon=True)
    thread.start()
    attempt.go(Go())
    assert begun.wait(WAIT_S)
    attempt.leave()
    attempt.leave()  # twice is no trouble
    go_on.set()
    thread.join(WAIT_S)
    assert [type(error) for error in raised] == [Stopped]
    assert files.did == ["cut gpu01"]
    assert worker.kinds == ["Claim"]


def test_a_word_for_a_run_that_is_not_here_is_not_heard():
    assert hear("hostwright-none", Heartbeat(), Worker()) is False  # type: ignore[arg-type]


def test_a_file_that_is_missing_is_missing_on_that_worker(tmp_path: Path):
    session, _, _, given, _ = at_work(tmp_path)
    placed = Attempt(session._place, given)._placed(ArtifactError("cuda: cuda.run is not on this machine: run mirror"))
    assert isinstance(placed, HostError)
    assert str(placed) == "gpu01: on the worker w1: cuda: cuda.run is not on this machine: run mirror"
