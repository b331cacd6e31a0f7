"""Commands over a real sshd: streams, several at once, caps, time limits, and hosts that hang or go away."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import Unreachable
from hostwright.transport import Session, connect
from tests.lab.sshd import Sshd, frozen, options, running, sshd

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
    """A stream of so many bytes."""

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


def test_output_comes_as_it_is_printed(session: Session) -> None:
    seen: list[tuple[float, bytes]] = []
    output = session.run(
        "echo one; sleep 1; echo two", timeout_s=20, on_stdout=lambda data: seen.append((time.monotonic(), data))
    )
    assert b"".join(data for _, data in seen) == b"one\ntwo\n"
    assert seen[-1][0] - seen[0][0] > 0.5
    assert output.stdout == b""


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
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_command_that_needs_longer_ends_at_its_time(session: Session) -> None:
    begun = time.monotonic()
    with pytest.raises(Unreachable, match=r"^gpu01: sleep 60 did not end within 1 s"):
        session.run("sleep 60", timeout_s=1)
    assert time.monotonic() - begun < 1.2
    with pytest.raises(Unreachable, match=r"within 0.5 s without a sign of life"):
        session.run("sleep 60", timeout_s=60, idle_s=0.5)
    assert session.run("echo on", timeout_s=20).stdout == b"on\n"


def test_signs_of_life_keep_a_command_running(session: Session) -> None:
    output = session.run("for i in 1 2 3 4; do echo $i; sleep 0.4; done", timeout_s=20, idle_s=1.2)
    assert output.stdout == b"1\n2\n3\n4\n"


@pytest.mark.parametrize("stdin", [None, b"small", "endless"])
def test_a_host_that_hangs_is_unreachable_at_its_time(sshd: Sshd, stdin: bytes | str | None) -> None:
    stream = Zeros(10**12) if stdin == "endless" else None
    with connect(sshd.target(), options()) as session:
        session.run("true", timeout_s=20)
        with frozen(sshd.pids()):
            begun = time.monotonic()
            with pytest.raises(Unreachable, match="the host hangs"):
                session.run("cat >/dev/null", stdin=stream or stdin, timeout_s=1)  # type: ignore[arg-type]
            assert time.monotonic() - begun < 1.6
            begun = time.monotonic()
            session.close()
            assert time.monotonic() - begun < 1


def test_a_host_that_hangs_in_the_middle_is_unreachable_at_its_time(sshd: Sshd) -> None:
    with connect(sshd.target(), options()) as session:
        failures: list[BaseException] = []
        started = threading.Event()

        def run() -> None:
            try:
                session.run(
                    "cat", stdin=Zeros(10**12), timeout_s=3, on_stdout=lambda _: started.set(), cap_bytes=10**12
                )
            except Unreachable as error:
                failures.append(error)

        begun = time.monotonic()
        thread = threading.Thread(target=run)
        thread.start()
        assert started.wait(20)
        with frozen(sshd.pids()):
            thread.join(10)
            assert time.monotonic() - begun < 4
        assert "the host hangs" in str(failures[0])


def test_a_lost_connection_is_named(sshd: Sshd) -> None:
    with connect(sshd.target(), options()) as session:
        threading.Timer(0.5, sshd.stop).start()
        with pytest.raises(
            Unreachable, match=rf"the connection was lost while sleep 60 ran \(root@127.0.0.1:{sshd.port}\)"
        ):
            session.run("sleep 60", timeout_s=30)
        with pytest.raises(Unreachable, match="the connection was lost"):
            session.run("true", timeout_s=30)


def test_one_channel_too_many_is_named() -> None:
    with running("MaxSessions 1") as server, connect(server.target(), options()) as session:
        thread = threading.Thread(target=session.run, args=("sleep 1",), kwargs={"timeout_s": 20})
        thread.start()
        while not session.execs:
            time.sleep(0.01)
        time.sleep(0.3)
        with pytest.raises(Unreachable, match="MaxSessions"):
            session.run("true", timeout_s=20)
        thread.join()
