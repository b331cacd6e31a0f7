"""Where runs are kept and for how long, and what names a run: its commit, its operator, its hosts' files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hostwright.apply import events
from hostwright.apply.journal import writing
from hostwright.apply.journal.header import RunHeader, commit_of
from hostwright.apply.journal.reading import Runs
from hostwright.apply.journal.writing import Journal
from hostwright.common.places import state_root
from tests.unit.apply.journal.test_journal import FACTS, PLAN, begin


def fill(root: Path, number: int, kept: Callable[[int], bool] = lambda n: False) -> list[Journal]:
    """Runs one after another, begun at different minutes; those for which ``kept`` says so still go on."""
    journals = []
    for n in range(number):
        journal = begin(root, run=f"run{n}", began=f"2024-05-01T10:{n:02}:00.000+00:00")
        journal(events.Observed("gpu01", PLAN, FACTS))
        if not kept(n):
            journal.end(0)
        journals.append(journal)
    return journals


def test_the_oldest_runs_make_room_and_none_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writing, "KEEP_RUNS", 4)
    journals = fill(tmp_path, 8, kept=lambda n: n == 1)
    assert [one.run for one in Runs(tmp_path).list()] == ["run7", "run6", "run5", "run4", "run1"]
    journals[1].end(0)
    (tmp_path / "runs" / ".going-run0").mkdir()
    assert writing.prune(tmp_path) == ("run1",)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["run4", "run5", "run6", "run7"]


def test_too_many_bytes_are_pruned_but_the_latest_runs_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fill(tmp_path, 8, kept=lambda n: n == 2)[2].close()  # one was cut off: its size is not written down
    one = Runs(tmp_path).find("run7").size_bytes
    assert one is not None
    monkeypatch.setattr(writing, "KEEP_BYTES", 6 * one + one // 2)
    assert writing.prune(tmp_path) == ("run1", "run0")
    monkeypatch.setattr(writing, "KEEP_BYTES", 1)
    assert writing.prune(tmp_path) == ("run2",)
    assert len(Runs(tmp_path).list()) == writing.KEEP_AT_LEAST


def test_where_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HOSTWRIGHT_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_root() == tmp_path / ".local" / "state" / "hostwright"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert state_root() == tmp_path / ".local" / "state" / "hostwright"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_root() == tmp_path / "xdg" / "hostwright"
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "mine"))
    assert state_root() == tmp_path / "mine"


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git here")
def test_the_commit_is_named_and_so_is_what_differs_from_it(tmp_path: Path):
    def git(*words: str) -> str:
        mine = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *mine, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert commit_of(tmp_path) == ""
    git("init", "-q")
    assert commit_of(tmp_path) == "", "nothing is committed yet"
    inventory, other = tmp_path / "inventory", tmp_path / "other"
    for folder in (inventory, other):
        folder.mkdir()
        (folder / "file").write_text("1")
    git("add", ".")
    git("commit", "-qm", "x")
    commit = git("rev-parse", "HEAD").strip()
    assert commit_of(inventory) == commit_of(inventory / "file") == commit
    (other / "file").write_text("2")
    assert (commit_of(inventory), commit_of(tmp_path)) == (commit, f"{commit}+dirty")
    (inventory / "new").touch()
    assert commit_of(inventory) == f"{commit}+dirty", "a file that is not added counts"
    assert commit_of(tmp_path / "no" / "such" / "place") == ""


def test_a_header_of_this_process_says_who_and_what(tmp_path: Path):
    header = RunHeader.now("provision", ["gpu01"], tmp_path, {"hosts": "all"}, site=tmp_path)
    assert header.pid == os.getpid()
    assert "@" in header.operator
    assert header.began.endswith("+00:00")
    assert header.inventory == str(tmp_path.resolve())
    assert header.inventory_commit == ""
