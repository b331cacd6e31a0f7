"""A persistent shell: programs are isolated, and need no further login or sudo."""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import Unreachable
from hostwright.inventory import Host
from hostwright.transport import Options, Session, connect
from hostwright.transport.root import keptshell
from hostwright.transport.root.keptshell import KeptShell
from hostwright.transport.root.rootshell import RootShell
from tests.lab.sshd import options, running
from tests.unit.transport.test_become import stand_in

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    stand_in(tmp_path, monkeypatch)
    with connect(Host("me", connection="local"), Options()) as opened:
        yield opened


@pytest.fixture(params=[False, True], ids=["login user", "root"])
def kept(session: Session, request: pytest.FixtureRequest) -> KeptShell:
    return KeptShell(RootShell(session), root=request.param)


def test_many_programs_take_two_channels(session: Session, kept: KeptShell) -> None:
    for number in range(20):
        output = kept.run(f"echo {number}; echo no >&2; exit {number}", timeout_s=20)
        assert (output.status, output.stdout, output.stderr) == (number, f"{number}\n".encode(), b"no\n")
    assert session.execs == 2


def test_a_program_neither_changes_nor_ends_the_shell_of_the_next(session: Session, kept: KeptShell) -> None:
    kept.run("true", timeout_s=20)
    for script in ("exit 3", "cd /; x=1; export x; umask 0", "if", "echo 'half", "cat", "exec >&-", "printf hwend-"):
        kept.run(script, timeout_s=20)
    output = kept.run("echo ${x-unset}; pwd; umask", timeout_s=20)
    assert output.stdout.decode().split() == ["unset", pwd.getpwuid(os.getuid()).pw_dir, "0022"]
    assert session.execs == 2


def test_bytes_come_as_they_are(kept: KeptShell) -> None:
    kept.run("true", timeout_s=20)
    output = kept.run("printf '\\000\\377\\n\\n'; head -c 3000000 /dev/zero; printf '\\n\\n' >&2", timeout_s=60)
    assert output.stdout == b"\0\xff\n\n" + bytes(3_000_000)
    assert output.stderr == b"\n\n"


def test_a_program_that_hangs_is_left_behind(session: Session, kept: KeptShell) -> None:
    kept.run("true", timeout_s=20)
    kept.run("true", timeout_s=20)
    with pytest.raises(Unreachable, match=r"me: /bin/sh did not end within 0\.2 s: the host hangs"):
        kept.run("sleep 60", timeout_s=0.2)
    assert kept.run("echo on", timeout_s=20).stdout == b"on\n"
    assert session.execs == 3


def test_a_program_that_is_killed_has_not_failed(kept: KeptShell) -> None:
    kept.run("true", timeout_s=20)
    for script in ("kill -9 $$", "kill -9 $PPID"):
        with pytest.raises(Unreachable, match="the program that Hostwright ran was killed on the host"):
            kept.run(script, timeout_s=20)
        assert kept.run("echo on", timeout_s=20).stdout == b"on\n"


def test_output_without_end_is_cut_off(session: Session, kept: KeptShell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keptshell, "CAP_BYTES", 100_000)
    kept.run("true", timeout_s=20)
    for number in range(4):
        assert len(kept.run("head -c 60000 /dev/zero", timeout_s=20).stdout) == 60_000
        assert session.execs == 2 + number // 2
    assert kept.run("cat /dev/zero", timeout_s=20).truncated
    assert kept.run("echo on", timeout_s=20).stdout == b"on\n"


def test_a_session_that_is_closed_ends_the_program_that_runs(session: Session, kept: KeptShell) -> None:
    kept.run("true", timeout_s=20)
    threading.Timer(0.2, session.close).start()
    with pytest.raises(Unreachable, match="the connection was lost"):
        kept.run("sleep 60", timeout_s=20)


def test_a_host_that_allows_one_channel_gets_one(tmp_path: Path) -> None:
    with running("MaxSessions 1") as sshd, connect(sshd.target(user=ME), options()) as session:
        shell = RootShell(session)
        user, root = KeptShell(shell, root=False), KeptShell(shell, root=True)
        for number in range(3):
            for kept in (user, root, root):
                assert kept.run(f"echo {number}", timeout_s=20).stdout == f"{number}\n".encode()
        assert shell.attempt("echo on", timeout_s=20).stdout == b"on\n"
