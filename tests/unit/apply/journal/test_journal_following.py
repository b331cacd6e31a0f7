"""A run that is read while somebody else writes it: in order, to its end, whatever that end is."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply import events
from hostwright.apply.journal import following
from hostwright.apply.journal.following import find, records
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.reading import Runs
from hostwright.apply.journal.writing import Journal
from hostwright.cli.tasks.keep import runs_follow
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from tests.unit.apply.journal.test_journal_reading import STORY

WAIT_S = 60.0
HEADER = RunHeader("run1", "provision", ("gpu01", "gpu02"), "/fleet/inventory", operator="bob@desk")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path))
    monkeypatch.setattr(following, "LOOK_S", 0.01)
    return tmp_path


def begin(root: Path, header: RunHeader = HEADER) -> Journal:
    return Journal.begin(root, header, secrets=(), on_trouble=pytest.fail)


class Follower:
    """Reads a run in a thread of its own."""

    def __init__(self, folder: Path):
        self.read: list[Any] = []
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._work, args=(folder,), daemon=True)
        self._thread.start()

    def _work(self, folder: Path) -> None:
        for record in records(folder):
            with self._more:
                self.read.append(record)
                self._more.notify_all()

    def wait_for(self, number: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.read) >= number, WAIT_S), self.read

    def ended(self) -> list[str]:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        return [record["kind"] for record in self.read]


@pytest.fixture
def journal(root: Path) -> Iterator[Journal]:
    journal = begin(root)
    yield journal
    journal.close()


def test_records_are_read_as_they_are_written(journal: Journal) -> None:
    follower = Follower(journal.path.parent)
    follower.wait_for(1)
    for number, event in enumerate(STORY, 2):
        journal(event)
        follower.wait_for(number)
    journal.end(1, sentence="a canary failed")
    kinds = follower.ended()
    assert (kinds[0], kinds[-1], len(kinds)) == ("run began", "run ended", len(STORY) + 2)


def test_half_a_line_is_waited_for(journal: Journal) -> None:
    follower = Follower(journal.path.parent)
    with journal.path.open("ab", buffering=0) as file:
        line = json.dumps({"kind": "note", "host": "gpu01", "text": "x" * 9000}).encode()
        file.write(line[:5000])
        follower.wait_for(1)
        file.write(line[5000:] + b"\n")
    follower.wait_for(2)
    journal.end(0)
    assert follower.ended() == ["run began", "note", "run ended"]


def test_it_ends_when_the_process_of_the_run_is_gone(journal: Journal) -> None:
    follower = Follower(journal.path.parent)
    journal(events.Note("gpu01", "last words"))
    journal.close()
    assert follower.ended() == ["run began", "note"]


def test_it_ends_when_the_record_is_removed(journal: Journal) -> None:
    follower = Follower(journal.path.parent)
    follower.wait_for(1)
    shutil.rmtree(journal.path.parent)
    assert follower.ended() == ["run began"]


def test_which_run_is_meant(root: Path) -> None:
    with pytest.raises(InputError, match=r"no run is in progress on this machine.*--hosts gpu01"):
        find(Runs(root), "")
    first = begin(root, RunHeader("run1", "provision", (), "i"))
    begin(root, RunHeader("run0", "verify", (), "i")).end(0)
    assert find(Runs(root), "").run == "run1"
    assert find(Runs(root), "run0").run == "run0"
    second = begin(root, RunHeader("run2", "provision", (), "i"))
    with pytest.raises(InputError, match=r"2 runs are in progress; name one: run[12], run[12]"):
        find(Runs(root), "")
    for journal in (first, second):
        journal.end(0)


def follow(*, json: bool = False, **more: Any) -> int:
    return runs_follow(Request(json=json), **more)


def test_the_verb_shows_each_record_and_ends_with_the_status_of_the_run(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = begin(root)
    for event in (*STORY, events.HostEnded("gpu02", "unreachable", "no\x1b[2J route")):
        journal(event)
    journal.end(1, sentence="a canary failed")
    assert follow(run="run1") == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(STORY) + 3, "a line each, however narrow the pipe is taken for"
    said = [line.split("  ", 1)[1] for line in lines]
    assert said[0] == "run1  provision of bob@desk began"
    assert said[2] == "gpu01  cuda: 3 steps"
    assert said[4] == "gpu01  cuda: failed with status 255, 1.0 s"
    assert said[-2] == "gpu02  unreachable: no\N{REPLACEMENT CHARACTER}[2J route"
    assert said[-1] == "run  ended with status 1: a canary failed"


def test_the_verb_says_that_a_run_was_cut_off_and_what_to_do(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(root).close()
    assert follow(run="run1") == 1
    out = capsys.readouterr().out
    assert "run1 was cut off" in out
    assert "next: `invoke runs.follow --hosts gpu01,gpu02 --inventory /fleet/inventory`\n" in out


def test_json_is_that_of_the_run_at_its_end(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = begin(root)
    journal(events.HostEnded("gpu01", "changed"))
    journal.end(0)
    assert follow(run="run1", json=True) == 0
    assert json.loads(capsys.readouterr().out)["run"] == "run1"


def test_ctrl_c_ends_the_following_and_not_the_run(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    begin(root).close()
    monkeypatch.setattr(following, "records", interrupted)
    assert follow(run="run1") == 130
    assert capsys.readouterr().err == "stopped following; the run itself continues\n"
