"""The operator, this machine, and its processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hostwright.common import operator


def test_an_operator_is_a_user_at_a_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOGNAME", "al\x1bice")
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert operator.operator() == f"al?ice@{os.uname().nodename}"


def test_behind_sudo_the_operator_is_who_called_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert operator.operator().startswith("alice@")


def test_a_machine_has_one_name_that_does_not_give_its_id_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "id").write_text("0123456789abcdef\n")
    monkeypatch.setattr(operator, "_MACHINE_ID", tmp_path / "id")
    with_id = operator.machine_id()
    monkeypatch.setattr(operator, "_MACHINE_ID", tmp_path / "none")
    assert len({with_id, operator.machine_id(), "0123456789abcdef"}) == 3
    assert operator.machine_id() == operator.machine_id()


@pytest.mark.parametrize("proc", ["/proc", "/none"], ids=["proc", "ps"])
def test_reused_process_id_is_another_process(proc: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operator, "_PROC", Path(proc))
    with subprocess.Popen(["sleep", "60"]) as process:
        started = operator.process_start(process.pid)
        assert operator.pid_alive(process.pid, started)
        assert not operator.pid_alive(process.pid, "1@" + started.partition("@")[2])
        assert operator.process_start(process.pid) == started != ""
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not operator.pid_alive(process.pid, started), "ended, and nobody has asked how"
    assert not operator.pid_alive(process.pid, started)
    assert not operator.pid_alive(10**30, started)


def test_where_nothing_says_when_processes_began_any_process_of_that_id_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(operator, "_PROC", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert operator.process_start(os.getpid()) == ""
    assert operator.pid_alive(os.getpid(), "")
    assert not operator.pid_alive(10**30, "")
