"""Commands over a real sshd: streams, parallel commands, caps, time limits, and hosts that hang or disappear."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import Unreachable
from hostwright.transport import Session, connect
from tests.lab.sshd import PROMPT_S, Sshd, frozen, options, running, sshd
from tests.unit.support.hostjobs import until, waiting

__all__ = ["sshd"]

USER = "hwtest-ssh"
PASSWORD = 'it\'s $(a) "secret" ü'


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    with running() as one:
        yield one


@pytest.fixture
def session(server: Sshd) -> Iterator[Session]:
    with connect(server.target(), options()) as one:
        yield one


class Zeros:
    """A stream of the given number of zero bytes."""

    def __init__(self, size: int):
        self.left = size

    def read(self, size: int, /) -> bytes:
        taken = min(size, self.left)
        self.left -= taken
        return bytes(taken)


def test_a_command_gives_back_all_that_it_did(session: Session, server: Sshd) -> None:
    output = session.run("cat; echo err >&2; exit 3", stdin=b"in", timeout_s=20)
    assert (output.status, output.stdout, output.stderr, output.truncated) == (3, b"in", b"err\n", False)
    assert 0 < output.duration_s < 20
    assert session.execs == 1
    assert session.endpoint == f"root@127.0.0.1:{server.port}"


def test_without_standard_input_a_command_sees_its_end(session: Session) -> None:
    assert session.run("cat", timeout_s=20).stdout == b""


def test_much_in_and_much_out_at_once_do_not_block_each_other(session: Session) -> None:
    output = session.run("cat; head -c 3000000 /dev/zero >&2", stdin=Zeros(12_000_000), timeout_s=60)
    assert (len(output.stdout), len(output.stderr), output.status) == (12_000_000, 3_000_000, 0)


def test_long_bytes_are_streamed_too(session: Session) -> None:
    data = os.urandom(5_000_000)
    assert session.run("cat", stdin=data, timeout_s=60).stdout == data


def test_several_channels_at_once(session: Session) -> None:
    answers: dict[int, bytes] = {}

    def ask(number: int) -> None:
        answers[number] = session.run(f"cat; sleep 0.2; echo {number}", stdin=b"x" * number, timeout_s=60).stdout

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: b"x" * number + b"%d\n" % number for number in range(8)}
    assert session.execs == 8


def test_too_much_output_is_cut_off_and_the_session_lives_on(session: Session) -> None:
    output = session.run("cat /dev/zero", cap_bytes=1000, timeout_s=60)
    assert (output.truncated, len(output.stdout), output.status) == (True, 1000, -1)
    both = session.run("head -c 600 /dev/zero; head -c 600 /dev/zero >&2; sleep 60", cap_bytes=1000, timeout_s=60)
    assert both.truncated
    assert len(both.stdout) + len(both.stderr) == 1000
    assert session.run("echo on", timeout_s=20).stdout == b"on\n"


def test_output_comes_as_it_is_printed(session: Session, tmp_path: Path) -> None:
    seen, heard = bytearray(), tmp_path / "heard"

    def hear(data: bytes) -> None:
        seen.extend(data)
        if seen == b"one\n":
            heard.touch()

    output = session.run(f"echo one; {waiting(heard)}; echo two", timeout_s=60, on_stdout=hear)
    assert (seen, output.stdout) == (b"one\ntwo\n", b"")


def test_an_error_of_the_stream_or_of_the_callback_is_the_callers(session: Session) -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise OSError(f"the disk is broken at {size}")

    def refuse(data: bytes) -> None:
        raise ValueError(data)

    with pytest.raises(OSError, match="the disk is broken"):
        session.run("cat", stdin=Broken(), timeout_s=20)
    with pytest.raises(ValueError, match="on"):
        session.run("echo on; sleep 60", timeout_s=20, on_stdout=refuse)
    assert session.run("echo on", timeout_s=20).stdout == b"on\n"


def test_a_command_that_ends_before_its_input_does(session: Session) -> None:
    for _ in range(20):
        assert session.run("exit 5", stdin=Zeros(20_000_000), timeout_s=30).status == 5


def test_a_command_that_a_signal_ends_is_not_a_lost_connection(session: Session) -> None:
    assert session.run("kill -9 $$", timeout_s=20).status == -1
    assert session.run("echo on", timeout_s=20).stdout == b"on\n"


def test_descriptors_are_given_back(session: Session) -> None:
    session.run("true", timeout_s=20)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        session.run("true", timeout_s=20)
    until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before, "all descriptors are closed")


def test_a_command_that_needs_longer_ends_at_its_time(session: Session) -> None:
    begun = time.monotonic()
    with pytest.raises(Unreachable, match=r"^gpu01: sleep 60 did not end within 1 s"):
        session.run("sleep 60", timeout_s=1)
    assert time.monotonic() - begun < PROMPT_S
    with pytest.raises(Unreachable, match=r"within 0.5 s without output"):
        session.run("sleep 60", timeout_s=60, idle_s=0.5)
    assert session.run("echo on", timeout_s=20).stdout == b"on\n"


def test_signs_of_life_keep_a_command_running(session: Session) -> None:
    output = session.run("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 1; done", timeout_s=60, idle_s=6)
    assert output.stdout == b"1\n2\n3\n4\n5\n6\n7\n8\n"


@pytest.mark.parametrize("stdin", [None, b"small", "endless"])
def test_a_host_that_hangs_is_unreachable_at_its_time(sshd: Sshd, stdin: bytes | str | None) -> None:
    stream = Zeros(10**12) if stdin == "endless" else None
    with connect(sshd.target(), options()) as session:
        session.run("true", timeout_s=20)
        with frozen(sshd.pids()):
            begun = time.monotonic()
            with pytest.raises(Unreachable, match="the host hangs"):
                session.run("cat >/dev/null", stdin=stream or stdin, timeout_s=1)  # type: ignore[arg-type]
            assert time.monotonic() - begun < PROMPT_S
            begun = time.monotonic()
            session.close()
            assert time.monotonic() - begun < PROMPT_S


def test_a_host_that_hangs_in_the_middle_is_unreachable_at_its_time(sshd: Sshd) -> None:
    with connect(sshd.target(), options()) as session:
        failures: list[BaseException] = []
        started = threading.Event()

        def run() -> None:
            try:
                session.run(
                    "cat", stdin=Zeros(10**12), timeout_s=10, on_stdout=lambda _: started.set(), cap_bytes=10**12
                )
            except Unreachable as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert started.wait(60)
        with frozen(sshd.pids()):
            thread.join(60)
            assert not thread.is_alive()
        assert "the host hangs" in str(failures[0])


def test_a_lost_connection_is_named(sshd: Sshd) -> None:
    with connect(sshd.target(), options()) as session:
        where = rf"\(root@127.0.0.1:{sshd.port}\)"
        with pytest.raises(Unreachable, match=rf"the connection was lost while echo begun; sleep 60 ran {where}"):
            session.run(
                "echo begun; sleep 60", timeout_s=60, on_stdout=lambda _: threading.Thread(target=sshd.stop).start()
            )
        with pytest.raises(Unreachable, match="the connection was lost"):
            session.run("true", timeout_s=30)


def test_one_channel_too_many_is_named(tmp_path: Path) -> None:
    with running("MaxSessions 1") as server, connect(server.target(), options()) as session:
        begun, over = threading.Event(), tmp_path / "over"
        given = {"timeout_s": 60, "on_stdout": lambda _: begun.set()}
        thread = threading.Thread(target=session.run, args=(f"echo begun; {waiting(over)}",), kwargs=given)
        thread.start()
        assert begun.wait(60)
        with pytest.raises(Unreachable, match="MaxSessions"):
            session.run("true", timeout_s=20)
        over.touch()
        thread.join()
