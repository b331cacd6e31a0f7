"""Commands of an inventory, run by the real /bin/sh: their environment, their output, their end."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.disturb import hooks
from hostwright.apply.disturb.hooks import Ended, run_here, run_there
from hostwright.common.errors import Unreachable
from hostwright.inventory import Host
from hostwright.transport import Output
from hostwright.transport.root import rootshell
from hostwright.transport.root.rootshell import RootShell

ENOUGH_S = 6.0  #: for a command to begin on a machine under load, where what comes then is its time limit
ABOUT = {"HOSTWRIGHT_HOST": "gpu01", "HOSTWRIGHT_REASON": 'it\'s $(touch evil) `id` "$HOME"'}
SHOW = 'printf "%s\\n" "$HOSTWRIGHT_HOST" "$HOSTWRIGHT_REASON"'


def comes_to_its_end(process: int) -> bool:
    """Whether a process is gone or a zombie soon: a kernel that is busy takes a moment to end what was killed."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


class LocalSession:
    """Runs what a host would run, here."""

    host = Host("gpu01")

    def run(self, command: str, *, stdin: bytes, timeout_s: float, **more: Any) -> Output:
        self.timeout_s = timeout_s
        done = subprocess.run(command.split(), input=stdin, capture_output=True, timeout=timeout_s, check=False)
        return Output(done.returncode, done.stdout, done.stderr, False, 60.0)


def here() -> RootShell:
    """Root on this machine, in place of a host."""
    return RootShell(LocalSession())  # type: ignore[arg-type]


@pytest.fixture(params=["here", "there"])
def carry_out(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Both ways of running a command: on this machine, and through a session."""
    monkeypatch.setattr(rootshell, "wrap", lambda user, root, password, **_: f"{user}\n{root}".encode())
    if request.param == "here":
        return run_here
    return lambda command, about, timeout_s: run_there(here(), command, about, timeout_s)


def test_what_a_command_is_about_comes_as_data(carry_out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert carry_out(SHOW, ABOUT, 60) == Ended(0, tuple(ABOUT.values()))
    assert list(tmp_path.iterdir()) == []


def test_a_command_is_a_shells_and_its_status_is_kept(carry_out):
    command = 'read -r line; echo "in: $line"; [ a = \'b\' ] || { echo "it\'s over" >&2; exit 77; }'
    assert carry_out(command, ABOUT, 60) == Ended(77, ("in:", "it's over"))


def test_only_the_end_of_what_it_prints_is_kept(carry_out):
    ended = carry_out("seq 1 200000; exit 3", ABOUT, 60)
    assert ended.status == 3
    assert ended.lines == tuple(str(number) for number in range(200_000 - hooks.LINES + 1, 200_001))


def test_a_command_that_prints_no_text_ends_all_the_same(carry_out):
    assert carry_out("head -c 100 /dev/urandom; printf '\\377\\n'; exit 4", ABOUT, 60).status == 4
    assert carry_out("exit 5", ABOUT, 60) == Ended(5)


def test_a_command_is_ended_with_its_children_when_its_time_is_over(carry_out, tmp_path: Path):
    child = tmp_path / "child"
    ended = carry_out(f"echo begun; sh -c 'echo $$ >{child}; exec sleep 600'; echo not reached", ABOUT, ENOUGH_S)
    assert ended == Ended(None, ("begun",))
    assert comes_to_its_end(int(child.read_text()))


def test_a_command_that_ignores_its_end_is_killed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hooks, "GRACE_S", 0.1)
    assert run_here("trap '' TERM; while :; do sleep 0.05; done", ABOUT, 0.2) == Ended(None)


def test_a_child_in_the_background_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(hooks, "_LAST_WORDS_S", 2.0)
    ended = run_here(f"sleep 600 & echo $! >{tmp_path}/child; echo done", ABOUT, 60)
    os.kill(int((tmp_path / "child").read_text()), 9)
    assert ended == Ended(0, ("done",))


def test_status_124_is_a_timeout_only_after_the_time_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rootshell, "wrap", lambda user, root, password, **_: f"{user}\n{root}".encode())
    assert run_there(here(), "exit 124", ABOUT, 3600) == Ended(124)


def test_the_host_gets_more_time_than_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rootshell, "wrap", lambda user, root, password, **_: f"{user}\n{root}".encode())
    session = LocalSession()
    run_there(RootShell(session), "true", ABOUT, 100)  # type: ignore[arg-type]
    assert session.timeout_s > 100 + hooks.GRACE_S


def test_a_host_without_room_for_the_output_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        rootshell, "wrap", lambda user, root, password, **_: f"{user}\nTMPDIR=/nonexistent\n{root}".encode()
    )
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    ended = run_there(here(), "true", ABOUT, 100)
    assert ended.status == 1
    assert "mktemp" in ended.lines[-1]


def test_killed_command_and_lost_host_are_told_apart(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rootshell, "wrap", lambda user, root, password, **_: f"{user}\n{root}".encode())
    assert run_there(here(), "kill -9 $$", ABOUT, 3600).status == 137
    monkeypatch.setattr(LocalSession, "run", lambda *_, **__: Output(143, b"begun\n", b"Terminated\n", False, 9.0))
    with pytest.raises(Unreachable, match="the program that Hostwright ran was killed on the host"):
        run_there(here(), "true", ABOUT, 3600)
