"""The line to a host: what is tried again, for how long, and what never is. Time is the test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from hostwright.apply import events
from hostwright.apply.host import connection
from hostwright.apply.host.connection import HostConnection, Patience
from hostwright.common.errors import Stopped, Unreachable
from hostwright.inventory import Host
from hostwright.transport import Output
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.transport.root.rootshell import RootShell

REFUSED = Unreachable("gpu01", "192.0.2.1:22 refuses the connection", passing=True)
NO_LOGIN = Unreachable("gpu01", "no usable key and no password")


class FakeSession:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Way:
    """A way to a host on which attempts go as told: an error is raised, anything else is a connection."""

    def __init__(self, *course: Exception | None):
        self.course = list(course)
        self.sessions: list[FakeSession] = []

    def __call__(self) -> Any:
        error = self.course.pop(0) if self.course else None
        if error is not None:
            raise error
        self.sessions.append(FakeSession())
        return RootShell(self.sessions[-1])  # type: ignore[arg-type]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds since the beginning; only sleeping passes time."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def make(way: Callable[[], Any], said: list[events.Event] | None = None, **patience: float) -> HostConnection:
    told = [] if said is None else said
    return HostConnection("gpu01", way, emit=told.append, patience=Patience(**patience))


def losing(times: int) -> Callable[[Any], str]:
    """Work whose connection is lost so many times before it is done."""
    left = [times]

    def work(shell: RootShell) -> str:
        if left[0]:
            left[0] -= 1
            raise Unreachable("gpu01", "the connection was lost", passing=True)
        return "done"

    return work


def test_a_lost_connection_is_made_anew_and_the_work_done_again(clock: list[float]):
    way, said = Way(), []
    assert make(way, said).use(losing(2)) == "done"
    assert [session.closed for session in way.sessions] == [True, True, False]
    tries = [event for event in said if isinstance(event, events.Retrying)]
    assert [event.number for event in tries] == [1, 2]
    assert all(0 < event.wait_s <= connection.MAX_BACKOFF_S + connection.BACKOFF_S for event in tries)
    assert "connected again" in [event.text for event in said if isinstance(event, events.Note)]


def test_patience_with_a_lost_connection_has_an_end(clock: list[float]):
    with pytest.raises(Unreachable, match="the connection was lost"):
        make(Way(), lost_s=300).use(losing(10_000))
    assert 300 <= clock[0] - 1000 <= 300 + connection.MAX_BACKOFF_S + connection.BACKOFF_S


def test_patience_begins_anew_with_a_connection_that_held_for_a_while(clock: list[float]):
    lost = [0]

    def work(shell: RootShell) -> str:
        lost[0] += 1
        if lost[0] <= 20:
            clock[0] += connection.STEADY_S + 100
            raise Unreachable("gpu01", "the connection was lost", passing=True)
        return "done"

    assert make(Way(), lost_s=60).use(work, steady=True) == "done"


def test_a_host_that_takes_every_connection_and_answers_nothing_is_given_up(clock: list[float]):
    """Each of its connections lives as long as the question's timeout, which is no sign that it is of use."""
    tries = []

    def hangs(shell: RootShell) -> str:
        tries.append(clock[0])
        clock[0] += 120
        raise Unreachable("gpu01", "it did not end within 120 s", passing=True)

    with pytest.raises(Unreachable, match="within 120 s"):
        make(Way(), lost_s=300).use(hangs)
    assert len(tries) == 3


def test_a_host_that_has_answered_is_waited_for_again_when_it_is_lost(clock: list[float]):
    way = make(Way(), lost_s=300)

    def lost(after_s: float) -> Callable[[RootShell], None]:
        def work(shell: RootShell) -> None:
            if len(told) % 2:
                clock[0] += after_s
            told.append(clock[0])
            if len(told) % 2:
                raise Unreachable("gpu01", "the connection was lost", passing=True)

        return work

    told: list[float] = []
    for _ in range(20):
        way.use(lost(after_s=200))
    assert len(told) == 40


def test_a_host_that_was_never_reached_is_given_up_soon(clock: list[float]):
    with pytest.raises(Unreachable, match="refuses"):
        make(Way(*[REFUSED] * 1000), first_s=6).use(losing(0))
    assert clock[0] - 1000 < 6 + connection.MAX_BACKOFF_S


def test_a_host_that_hangs_fails_at_its_own_timeout_and_not_later(clock: list[float]):
    tries = []

    def hangs() -> Any:
        tries.append(clock[0])
        clock[0] += 15
        raise Unreachable("gpu01", "no answer within 15 s", passing=True)

    with pytest.raises(Unreachable, match="no answer"):
        make(hangs).use(losing(0))
    assert len(tries) == 1


@pytest.mark.parametrize(
    "error",
    [NO_LOGIN, HostKeyMismatch("gpu01", "the key changed"), Stopped("gpu01", "interrupted"), ValueError("a bug")],
)
def test_what_does_not_pass_by_itself_is_not_tried_again(clock: list[float], error: Exception):
    way = Way(error)
    with pytest.raises(type(error)):
        make(way).use(losing(0))
    assert clock[0] == 1000


def test_login_refused_during_boot_is_retried(clock: list[float]):
    """pam_nologin: sshd answers before users may log in."""
    way = Way(None, NO_LOGIN, NO_LOGIN)
    assert make(way).use(losing(1)) == "done"
    assert len(way.sessions) == 2


def test_another_key_after_a_loss_is_an_error_at_once(clock: list[float]):
    with pytest.raises(HostKeyMismatch):
        make(Way(None, HostKeyMismatch("gpu01", "the key changed"))).use(losing(1))


def test_roles_that_run_side_by_side_share_one_new_connection():
    way = Way()
    one = make(way)
    first = one.shell
    meeting = threading.Barrier(4, timeout=60)
    answers: list[str] = []

    def role() -> None:
        def work(shell: RootShell) -> str:
            if shell is first:
                meeting.wait()
                raise Unreachable("gpu01", "the connection was lost", passing=True)
            return "done"

        answers.append(one.use(work))

    threads = [threading.Thread(target=role) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == ["done"] * 4
    assert len(way.sessions) == 2


def test_a_program_that_was_killed_with_its_host_is_run_again(clock: list[float]):
    statuses = [137, 0]

    class Session(FakeSession):
        host = Host("gpu01")

        def run(self, command: str, *, stdin: bytes, timeout_s: float) -> Output:
            return Output(statuses.pop(0), b"", b"Killed", False, 0.0)

    def connect() -> RootShell:
        return RootShell(Session())  # type: ignore[arg-type]

    assert make(connect).run("true", timeout_s=10, failure="it failed").status == 0
    assert statuses == []


def test_a_connection_that_is_lost_each_time_after_a_while_is_left_after_hours(clock: list[float]) -> None:
    """Each loss alone is one of a connection that had been steady: without a bound it would go on for ever."""
    attempts = 0

    def work(shell: RootShell) -> None:
        nonlocal attempts
        attempts += 1
        clock[0] += connection.STEADY_S + 1
        raise Unreachable("gpu01", "the connection was lost", passing=True)

    with pytest.raises(Unreachable):
        make(Way()).use(work)
    assert attempts < connection.LONGEST_S / connection.STEADY_S
