"""One connection for several processes: what goes over it, what goes wrong, and a host that takes few commands."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe

import pytest

from hostwright.common.errors import ChannelRefused, HostError, ProtocolError, Unreachable
from hostwright.inventory import Host
from hostwright.transport import Output, Session
from hostwright.verify.lending import Lender, LentSession
from tests.unit.support.hostjobs import until

HOST = Host("gpu01")


class Changed(HostError):
    """An error with more than a sentence."""

    def __init__(self, host: str, message: str, key: str):
        super().__init__(host, message)
        self.key = key


FULL = "it refuses one more channel: open failed (MaxSessions in its sshd_config?)"


class Fake(Session):
    """A session that answers with what it was given; ``room`` is how many commands it takes at once."""

    def __init__(self, does: Callable[[str], None] = lambda _: None, room: int = 10):
        super().__init__(HOST, "somewhere")
        self.does, self.room = does, room
        self.now = self.most = self.refused = 0
        self.closed = False

    def run(self, command: str, **given) -> Output:
        with self._lock:
            if self.now == self.room:
                self.refused += 1
                raise ChannelRefused("gpu01", FULL, passing=True)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            self.does(command)
        finally:
            with self._lock:
                self.now -= 1
        return Output(3, f"{command} {given['stdin']} {given['timeout_s']:g}".encode(), b"warned", False, 0.5)

    def close(self) -> None:
        self.closed = True

    def _end(self) -> None:
        """Nothing to cut."""


@contextmanager
def lent(connect: Callable[[], Session], number: int = 1) -> Iterator[list[LentSession]]:
    """Sessions over the connection of a lender; they are closed at the end, as by processes that end."""
    ends = [Pipe() for _ in range(number)]
    lender = Lender(connect, [theirs for _, theirs in ends])
    thread = threading.Thread(target=lender.lend)
    thread.start()
    sessions = [LentSession(HOST, ours) for ours, _ in ends]
    try:
        yield sessions
    finally:
        for session in sessions:
            session.close()
        thread.join(60)
        assert not thread.is_alive()


def test_a_command_goes_over_with_its_input_and_its_output_comes_back():
    session = Fake()
    with lent(lambda: session) as (ours,):
        assert ours.run("cat", stdin=b"in", timeout_s=7) == Output(3, b"cat b'in' 7", b"warned", False, 0.5)
        assert ours.run("cat", stdin=io.BytesIO(b"stream"), timeout_s=1).stdout == b"cat b'stream' 1"
        pieces: list[bytes] = []
        assert ours.run("cat", timeout_s=1, on_stdout=pieces.append).stdout == b""
        assert (pieces, ours.execs) == ([b"cat None 1"], 3)
    assert session.closed


def test_all_of_them_share_one_connection_which_is_made_when_it_is_needed():
    made: list[Fake] = []
    meeting = threading.Barrier(3, timeout=60)

    def connect() -> Session:
        made.append(Fake(lambda _: (meeting.wait(), None)[1]))
        return made[-1]

    with lent(connect, 3) as sessions:
        assert made == []
        threads = [
            threading.Thread(target=session.run, args=("true",), kwargs={"timeout_s": 1}) for session in sessions
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert (len(made), made[0].most) == (1, 3)  # at the same time


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("gpu01", "the connection was lost while true ran", passing=True),
        ProtocolError("gpu01", "it sends far more than it was asked for"),
    ],
)
def test_an_error_of_the_host_is_the_same_on_both_sides(error: HostError):
    def fails(_: str) -> None:
        raise error

    with lent(lambda: Fake(fails)) as (ours,), pytest.raises(type(error)) as told:
        ours.run("true", timeout_s=1)
    assert (str(told.value), vars(told.value)) == (str(error), vars(error))


def test_where_no_connection_can_be_made_every_command_says_why_and_it_is_tried_once():
    tried = []

    def connect() -> Session:
        tried.append(1)
        raise Changed("gpu01", "its key has changed", "ssh-ed25519")

    with lent(connect, 2) as sessions:
        for session in sessions:
            with pytest.raises(Changed, match="gpu01: its key has changed") as told:
                session.run("true", timeout_s=1)
            assert told.value.key == "ssh-ed25519"
    assert tried == [1]


def test_a_mistake_of_ours_is_told_and_ends_no_other_command():
    def fails(command: str) -> None:
        if command == "bad":
            raise ZeroDivisionError("by nothing")

    with lent(lambda: Fake(fails)) as (ours,):
        with pytest.raises(HostError, match="ZeroDivisionError: by nothing"):
            ours.run("bad", timeout_s=1)
        assert ours.run("good", timeout_s=1).status == 3


def test_a_host_that_takes_one_command_at_a_time_gets_them_one_after_another():
    begun, refused = threading.Event(), threading.Event()
    first: list[str] = []

    def does(command: str) -> None:
        if not first:
            first.append(command)
            begun.set()
            assert refused.wait(60)

    session = Fake(does, room=1)
    outputs: list[Output] = []
    with lent(lambda: session, 3) as sessions:
        run = [
            threading.Thread(target=lambda one=one: outputs.append(one.run("true", timeout_s=1))) for one in sessions
        ]
        run[0].start()
        assert begun.wait(60)
        run[1].start()
        run[2].start()
        until(lambda: session.refused >= 2, "both are told that there is no room, and wait for it")
        refused.set()
        for thread in run:
            thread.join(60)
    assert (len(outputs), session.most) == (3, 1)


def test_a_host_that_takes_no_command_at_all_is_an_error():
    with lent(lambda: Fake(room=0)) as (ours,), pytest.raises(Unreachable, match="refuses one more channel"):
        ours.run("true", timeout_s=1)


def test_a_lender_that_is_gone_is_an_error_of_the_host():
    ours, theirs = Pipe()
    session = LentSession(HOST, ours)
    theirs.close()
    with pytest.raises(Unreachable, match="gpu01: the process that has its connection is gone"):
        session.run("true", timeout_s=1)
