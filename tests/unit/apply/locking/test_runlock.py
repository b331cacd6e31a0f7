"""Holding a run's lock, by the real program that keeps it on a host, run by this machine's own /bin/sh."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.locking import operatorlock, runlock
from hostwright.apply.locking.runlock import HostLock
from hostwright.common.errors import HostError, Locked, Unreachable
from hostwright.plan.host import locks
from hostwright.plan.host.locks import Holder
from hostwright.plan.model import Answer, Facts
from hostwright.transport import Output
from hostwright.transport.root import become
from hostwright.transport.root.rootshell import RootShell
from tests.unit.plan.test_locks import MINE, NOW, RMA, THEIRS, place, seen
from tests.unit.support.shell import program

__all__ = ["place"]

LONG_S = 8  #: in the place of 15 after which a lock lapses: a machine under load stands still for some of them

#: Stands in for sudo where the tests run as a user.
SUDO = 'while [ $# -gt 0 ]; do case $1 in -S) read -r line;; -p) shift;; -*) ;; *) break;; esac; shift; done\nexec "$@"'


class LocalSession:
    """Runs what a host would run, here. ``prefix`` is what a login shell prints."""

    def __init__(self, path: str, prefix: bytes = b""):
        self.host = SimpleNamespace(name="gpu01")
        self.processes: list[subprocess.Popen[bytes]] = []
        self._path = path
        self._prefix = prefix

    def run(
        self, command: str, *, stdin: Any, timeout_s: float, cap_bytes: int = 0, on_stdout: Callable[[bytes], None]
    ) -> Output:
        """See ``transport.Session.run``."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": self._path},
            bufsize=0,
        )
        self.processes.append(process)
        threading.Thread(target=self._send, args=(process, stdin), daemon=True).start()
        on_stdout(self._prefix)
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 7):
            on_stdout(data)
        with process:
            stderr = process.stderr.read() if process.stderr else b""
        return Output(process.returncode, b"", stderr, False, 0.0)

    @staticmethod
    def _send(process: subprocess.Popen[bytes], stdin: Any) -> None:
        assert process.stdin is not None
        with suppress(OSError):
            while data := stdin.read(3):
                process.stdin.write(data)
            process.stdin.close()


@pytest.fixture
def session(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalSession]:
    monkeypatch.setattr(runlock, "RELEASE_S", 60.0)  # what is looked at afterwards is the host without the lock
    path = program(place / "bin", "sudo", SUDO).parent
    one = LocalSession(f"{path}:{os.environ['PATH']}")
    yield one
    for process in one.processes:
        process.kill()


def take(session: LocalSession, holder: Holder = MINE, **more: Any) -> HostLock:
    return HostLock.acquire(RootShell(session), holder, **more)  # type: ignore[arg-type]


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def holders(path: Path) -> set[int]:
    """The processes of this user that have a file open."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            found |= {int(folder.parent.name) for one in folder.iterdir() if str(one.readlink()) == str(path)}
    return found


def keeper_pid(place: Path) -> int:
    return int((place / "run" / "run.pid").read_text().split()[0])


def test_a_lock_is_held_seen_by_others_and_given_back(place: Path, session: LocalSession):
    with take(session) as lock:
        assert not lock.lost
        lock.check()
        assert locks.run_lock(seen()) == MINE
        # What it starts must not hold on to it; what is being forked does, for a moment.
        eventually(lambda: holders(place / "run" / "run.lock") == {keeper_pid(place)})
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (place / "run").iterdir()}
        assert modes == {"run.lock": "0o600", "run.json": "0o644", "run.pid": "0o644"}
        with pytest.raises(Locked, match=r"gpu01: in use by alice@desk since 2026-03-01 12:00 UTC \(run run-1"):
            take(session, THEIRS)
        lock.check()
    assert lock.lost
    lock.release()
    assert locks.run_lock(seen()) is None
    take(session, THEIRS).release()
    assert [path.name for path in (place / "run").iterdir()] == ["run.lock"]


def test_a_lock_reports_since_when_no_run_had_it(place: Path, session: LocalSession):
    with take(session) as first:
        assert first.free_s == math.inf, "no run had it since the boot"
    with take(session) as second:
        assert 0 <= second.free_s < LONG_S
    (place / "run" / "run.lock").write_text(f"{int(float(Path('/proc/uptime').read_text().split()[0])) - 100}\n")
    with take(session) as third:
        assert 100 <= third.free_s < 100 + LONG_S
        os.kill(keeper_pid(place), signal.SIGKILL)
        eventually(lambda: third.lost)
    with take(session) as fourth:
        assert fourth.free_s == 0, "nothing says what a run that was killed still changed"


def test_what_a_login_shell_prints_is_no_answer(session: LocalSession):
    session._prefix = b"Welcome!\nx busy 0 x\nx held\nx beat 1\n"
    with take(session) as lock:
        assert not lock.lost


def test_a_lock_is_waited_for_and_whoever_waits_is_told(session: LocalSession, monkeypatch: pytest.MonkeyPatch):
    first, told = take(session), []

    def notify(sentence: str) -> None:
        told.append(sentence)
        threading.Timer(0.1, first.release).start()

    with take(session, THEIRS, wait_s=60, notify=notify) as second:
        assert not second.lost
    assert told == [f"waiting for the host's lock: {locks.held_by(MINE)}"]


def test_the_lock_of_another_worker_of_the_same_run_is_waited_for_unasked(session: LocalSession):
    first, told = take(session), []
    successor = replace(MINE, machine="another", pid=7, started="7@x")

    def notify(sentence: str) -> None:
        told.append(sentence)
        threading.Timer(0.1, first.release).start()

    with take(session, successor, notify=notify) as second:
        assert not second.lost
    assert told == [f"waiting for the host's lock: {locks.held_by(MINE)}"]


def test_a_wait_ends(session: LocalSession):
    with take(session), pytest.raises(Locked, match="alice@desk"):
        take(session, THEIRS, wait_s=1.2)


def test_a_keeper_that_is_killed_holds_nothing(place: Path, session: LocalSession):
    lock = take(session)
    os.kill(keeper_pid(place), signal.SIGKILL)
    eventually(lambda: lock.lost)
    assert (place / "run" / "run.json").exists()
    assert locks.run_lock(seen()) is None, "what it left says nothing"
    with pytest.raises(
        HostError,
        match=r"the host's lock was lost \(the program that Hostwright ran was killed on the host: the host is going",
    ):
        lock.check()
    take(session, THEIRS).release()


def test_a_connection_that_ends_gives_the_lock_back(place: Path, session: LocalSession):
    lock = take(session)
    assert session.processes[0].stdin is not None
    session.processes[0].stdin.close()
    eventually(lambda: lock.lost)
    eventually(lambda: not (place / "run" / "run.json").exists())
    take(session, THEIRS).release()


def test_silent_controller_gives_up_its_lock_before_others_take_it(
    place: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runlock, "LAPSES_S", 12)
    monkeypatch.setattr(runlock, "MARGIN_S", 11.0)  # the time for a look at all processes before it lapses
    monkeypatch.setattr(runlock, "BEAT_S", 60.0)
    lock = take(session)
    eventually(lambda: lock.lost)
    assert keeper_pid(place) in holders(place / "run" / "run.lock")
    with pytest.raises(HostError, match=r"the host's lock was lost \(its connection is silent"):
        lock.check()
    take(session, THEIRS, wait_s=120).release()


def test_signs_of_life_keep_it_longer_than_it_lapses(session: LocalSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runlock, "LAPSES_S", LONG_S)
    monkeypatch.setattr(runlock, "MARGIN_S", 0.0)
    monkeypatch.setattr(runlock, "BEAT_S", 0.05)
    lock = take(session)
    began_s = time.monotonic()
    eventually(lambda: time.monotonic() > began_s + LONG_S + 1)
    lock.check()
    with pytest.raises(Locked):
        take(session, THEIRS)
    lock.release()


def test_the_lock_of_a_dead_controller_of_this_machine_is_waited_for(
    session: LocalSession, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runlock, "LAPSES_S", LONG_S)
    ours = locks.holder("run-2", "gpu01", NOW)
    with monkeypatch.context() as silent:
        silent.setattr(runlock, "BEAT_S", 60.0)
        take(session, replace(ours, run="run-1", pid=4194305, started="1@x"))
        told: list[str] = []
        with take(session, ours, notify=told.append) as lock:
            assert not lock.lost
    assert told, "it did not lapse at once"


def test_a_host_that_says_nothing_is_unreachable(session: LocalSession, place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runlock, "ANSWER_S", 0.2)
    program(place / "bin", "flock", "exec sleep 30")
    monkeypatch.setattr(become, "PATH", f"{place / 'bin'}:{become.PATH}")
    with pytest.raises(Unreachable, match="did not answer within"):
        take(session)


def test_a_host_that_cannot_be_locked_says_why(session: LocalSession, place: Path):
    (place / "run").write_text("a file")
    with pytest.raises(HostError, match=r"gpu01: the host cannot be locked: .*run"):
        take(session)


def test_a_lost_connection_is_told_as_it_is(session: LocalSession, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> Output:
        raise Unreachable("gpu01", "the connection was lost", passing=True)

    monkeypatch.setattr(session, "run", broken)
    with pytest.raises(Unreachable, match="the connection was lost"):
        take(session)


def test_no_thread_is_left_behind(session: LocalSession):
    before = set(threading.enumerate())
    for _ in range(3):
        take(session).release()
    eventually(lambda: not set(threading.enumerate()) - before)


def test_the_program_is_one_line_for_login_shells_that_want_it_so():
    assert "\n" not in runlock._KEEP
    assert "!" not in runlock._KEEP


@pytest.mark.parametrize(
    "change",
    [lambda shell: operatorlock.put_lock(shell, RMA), lambda shell: operatorlock.take_lock_off(shell, RMA.owner)],
)
def test_host_going_down_while_its_lock_changes_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[RootShell], object]
):
    killed = Output(137, b"", b"Killed\n", False, 0.0)
    session: Any = SimpleNamespace(host=SimpleNamespace(name="gpu01"), run=lambda *_, **__: killed)
    there = Facts({locks.LOCK: Answer(0, f"there\n{RMA.to_json()}"), locks.RUN_LOCK: Answer(1, "")})
    monkeypatch.setattr(operatorlock, "probe_locks", lambda shell: there)
    with pytest.raises(Unreachable, match="the program that Hostwright ran was killed on the host"):
        change(RootShell(session))
