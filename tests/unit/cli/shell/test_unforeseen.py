"""Operators never get a traceback: they get one sentence, and a private report without secrets."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from contextvars import copy_context
from pathlib import Path

import pytest

from hostwright.cli.exits import run
from hostwright.cli.opening import open_fleet
from hostwright.cli.shell.advice import CALL, Call
from hostwright.cli.shell.unforeseen import sentence_of, shown_words
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from tests.places import PROJECT


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def broken() -> int:
    raise KeyError("gpu01")


def report_in(state: Path) -> Path:
    (file,) = (state / "reports").iterdir()
    return file


def test_what_nobody_foresaw_is_a_sentence_with_the_place_of_a_report(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(broken) == 1
    out, err = capsys.readouterr()
    file = report_in(state)
    said = " ".join(err.split())
    assert out == ""
    assert re.fullmatch(
        rf"internal error: KeyError at \S+test_unforeseen.py:\d+; attach {file}, "
        "which contains no secrets, to a bug report",
        said,
    )
    text = file.read_text()
    assert "Traceback" not in err
    assert "KeyError: 'gpu01'" in text and "in broken" in text
    assert text.startswith("Hostwright ")


def test_nobody_else_can_read_a_report(state: Path) -> None:
    old = os.umask(0)
    try:
        sentence_of(KeyError("x"), ["hostwright", "plan"])
    finally:
        os.umask(old)
    assert report_in(state).stat().st_mode & 0o777 == 0o600
    assert report_in(state).parent.stat().st_mode & 0o777 == 0o700


def test_a_report_holds_no_secret(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not those of the inventory, of ``--var``, or typed at a prompt."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {ansible_become_password: opensesame-1}}}\n")

    def verb() -> int:
        request = Request("all", inventory=(str(tmp_path / "hosts.yml"),), var=("motd=opensesame-2",))
        CALL.set(Call(request=request))
        fleet, typed = open_fleet(request), Secret("opensesame-3")
        assert fleet
        assert typed
        raise ValueError("opensesame-1 opensesame-2 opensesame-3 at https://ann:opensesame-4@example.org")

    assert copy_context().run(run, verb) == 1
    text = report_in(state).read_text() + capsys.readouterr().err
    assert "ValueError" in text
    assert "opensesame" not in text


def test_values_that_may_be_secret_are_not_among_the_words_of_a_report() -> None:
    words = ["hostwright", "plan", "gpu01", "--var", "a=b", "--var=c=d", "--json", "--var"]
    assert shown_words(words) == ["hostwright", "plan", "gpu01", "--var", "***", "--var=***", "--json", "--var"]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "/var/x: No space left on device; free some space there"),
        (errno.EROFS, "/var/x: Read-only file system; mount it writable"),
        (errno.EACCES, "/var/x: Permission denied; change its owner or mode"),
        (errno.EMFILE, "/var/x: Too many open files; raise the limit of open files (`ulimit -n 4096`)"),
    ],
)
def test_what_this_machine_refuses_is_said_as_it_is(state: Path, number: int, sentence: str) -> None:
    assert sentence_of(OSError(number, os.strerror(number), "/var/x")).startswith(sentence)
    assert not state.exists(), "no report: there is nothing to mend in the program"


def test_a_report_that_cannot_be_written_leaves_the_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "file"))
    said = sentence_of(KeyError("x"), ["hostwright"])
    assert said.startswith("internal error: KeyError at ")
    assert "no report could be written: NotADirectoryError" in said


TASKS = "from invoke import task\n\n@task\ndef racks(c):\n    raise ValueError('no racks')\n"


def test_a_task_of_a_site_that_fails_names_its_line(state: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "inventory").mkdir(parents=True)
    (site / "tasks.py").write_text(TASKS)
    command, env = [sys.executable, "-m", "hostwright", "racks"], {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"ValueError at {site}/tasks.py:5; " in done.stderr
    assert "Traceback" not in done.stderr
    assert "no racks" in report_in(state).read_text()


def test_what_cannot_be_written_in_the_state_directory_may_be_kept_elsewhere(state: Path) -> None:
    said = sentence_of(OSError(errno.EROFS, os.strerror(errno.EROFS), f"{state}/runs"))
    elsewhere = "mount it writable, or set HOSTWRIGHT_STATE to a directory elsewhere"
    assert said == f"{state}/runs: Read-only file system; {elsewhere}"
