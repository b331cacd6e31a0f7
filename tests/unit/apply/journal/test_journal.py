"""Writing the record of a run: what is in it, where, and what happens when it cannot be written."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply import events
from hostwright.apply.jobs.scripting import Progress
from hostwright.apply.journal.factfiles import load_facts
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.reading import Runs
from hostwright.apply.journal.writing import Journal
from hostwright.common import places
from hostwright.common.errors import InputError, Refused
from hostwright.common.secret import Secret
from hostwright.plan.model import Answer, Change, Facts, Plan, Probe, RolePlan, RoleResult, Step, StepResult

INVENTORY = "/srv/inventory"
HEADER = RunHeader(
    run="run1",
    verb="provision",
    hosts=("gpu01", "gpu02"),
    inventory=INVENTORY,
    options={"hosts": "all", "var": ["cuda_version=11.2"]},
    operator="ann@desk",
    commit="c" * 40,
    argv=("invoke", "provision"),
    pid=os.getpid(),
    began="2024-05-01T10:00:00.000+00:00",
)
PLAN = Plan("gpu01", "tf", (RolePlan("cuda", ("base",), (Change("toolkit", "absent", "11.2", (Step("true"),)),)),))
FACTS = Facts({Probe("uname -r"): Answer(0, "5.4"), Probe("cat x", root=True, cap_bytes=9): Answer(1, "", True)})
DONE = RoleResult("cuda", 0, 2.5, (StepResult(0, "toolkit", 0, 2.5, "Unpacking\nSetting up", 2),))


def begin(root: Path, *, secrets: tuple[str, ...] = (), **header: Any) -> Journal:
    """A journal that must not fail."""
    return Journal.begin(
        root, replace(HEADER, **header), secrets=[Secret(text) for text in secrets], on_trouble=pytest.fail
    )


def record(root: Path, status: int | None, *said: events.Event, **header: Any) -> Journal:
    """A whole run; one without a status is left as a killed process leaves it."""
    journal = begin(root, **header)
    for event in said:
        journal(event)
    journal.close() if status is None else journal.end(status)
    return journal


def lines(journal: Journal) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.path.read_text("ascii").splitlines()]


def test_every_event_that_matters_is_recorded_in_order_with_its_time(tmp_path: Path):
    journal = record(
        tmp_path,
        0,
        events.Waiting("gpu01", "a connection"),
        events.Observed("gpu01", PLAN, FACTS),
        events.Delivering("gpu01", "cuda", "cuda.run", 1, 2),
        events.Delivering("gpu01", "cuda", "cuda.run", 2, 2, "peer gpu02", {"peer gpu02": 2}, 1.5),
        events.RoleStarted("gpu01", "cuda", 1, "run1-cuda-aa"),
        events.Attached("gpu02", "cuda", 3, "run0-cuda-bb", "run0", "bob@desk"),
        events.RoleProgress("gpu01", "cuda", Progress(0, "toolkit", "…")),
        events.Retrying("gpu01", "connection", 2, 1.5, "reset"),
        events.Silent("gpu01", "its answers", 12.0),
        events.RoleFinished("gpu01", "cuda", DONE),
        events.Rebooted("gpu01", "nouveau", 90.0),
        events.Note("gpu01", "é → \x1b[31m"),
        events.HostEnded("gpu01", "changed"),
    )
    found = lines(journal)
    assert [one["kind"] for one in found] == [
        "run began", "observed", "delivering", "role started", "attached", "retrying", "silent", "role finished",
        "rebooted", "note", "host ended", "run ended",
    ]  # fmt: skip
    assert all(one["t"] >= 0 and one["at"].endswith("+00:00") for one in found)
    assert [one["t"] for one in found] == sorted(one["t"] for one in found)
    by_kind = {one["kind"]: one for one in found}
    assert Plan.from_json(by_kind["observed"]["plan"]) == PLAN
    assert by_kind["role finished"]["steps"][0]["output"] == "Unpacking\nSetting up"
    assert by_kind["role finished"]["steps"][0]["tries"] == 2
    assert (by_kind["delivering"]["sent"], by_kind["delivering"]["seconds"]) == ({"peer gpu02": 2}, 1.5)
    assert by_kind["note"]["text"] == "é → \x1b[31m"
    assert by_kind["run began"]["schema"] == 1
    assert by_kind["run began"]["options"] == HEADER.options
    assert by_kind["run ended"]["results"] == {"changed": 1, "interrupted": 1}
    assert b"\x1b" not in journal.path.read_bytes(), "a record can be looked at with cat"


def test_the_first_look_is_before_and_the_latest_is_after(tmp_path: Path):
    later = [Facts({Probe("uname -r"): Answer(0, text)}) for text in ("5.5", "5.6")]
    journal = begin(tmp_path)
    journal(events.Observed("gpu01", PLAN, FACTS))
    folder = journal.path.parent / "facts"
    assert [path.name for path in folder.iterdir()] == ["gpu01.before.json.gz"]
    for facts in later:
        journal(events.Observed("gpu01", PLAN, facts))
    journal(events.Observed("gpu02", PLAN))
    journal.end(0)
    assert sorted(path.name for path in folder.iterdir()) == ["gpu01.after.json.gz", "gpu01.before.json.gz"]
    before, after = (load_facts(folder / f"gpu01.{when}.json.gz")[0] for when in ("before", "after"))
    assert dict(before) == dict(FACTS)
    assert dict(after) == dict(later[1])
    assert sum(path.stat().st_size for path in folder.iterdir()) < lines(journal)[-1]["bytes"]


@pytest.mark.parametrize("damage", [b"", b"not gzip", "short", "other"])
def test_facts_that_cannot_be_read_are_said_to_be_so(tmp_path: Path, damage: bytes | str):
    journal = record(tmp_path, 0, events.Observed("gpu01", PLAN, FACTS))
    path = journal.path.parent / "facts" / "gpu01.before.json.gz"
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    elif damage == "short":
        path.write_bytes(path.read_bytes()[:-12])
    else:
        path.unlink()
    with pytest.raises(InputError, match=r"gpu01\.before"):
        load_facts(path)


def test_journal_files_are_private(tmp_path: Path):
    os.umask(old := os.umask(0))
    try:
        os.umask(0)
        journal = record(tmp_path / "state", 0, events.Observed("gpu01", PLAN, FACTS))
    finally:
        os.umask(old)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert journal.path in modes


def test_the_names_of_hosts_are_made_safe_and_stay_different():
    names = [
        "gpu01",
        "GPU01",
        "../../etc/passwd",
        "..",
        ".",
        "",
        "a/b",
        "a\\b",
        "a b",
        "a\0b",
        "ä",
        "x" * 300,
        "gpu01+",
    ]
    files = [places.facts_file(name, "before") for name in names]
    assert len({file.lower() for file in files}) == len(names), "also where letters' case does not count"
    assert files[0] == "facts/gpu01.before.json.gz"
    for file in files:
        assert Path(file).parent == Path("facts")
        assert Path(file).name.isascii()
        assert not Path(file).name.startswith(".")
        assert "\0" not in file
        assert len(file) < 200


def test_many_threads_write_whole_lines(tmp_path: Path):
    journal = begin(tmp_path)
    ready = threading.Barrier(16)

    def talk(name: str) -> None:
        ready.wait()
        for number in range(50):
            journal(events.Note(name, f"{number} " + "x" * 5000))
        journal(events.HostEnded(name, "changed"))

    threads = [threading.Thread(target=talk, args=(f"gpu{number:02}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.end(0)
    found = lines(journal)
    assert len(found) == 1 + 16 * 51 + 1
    for number in range(16):
        mine = [one["text"].split()[0] for one in found if one.get("host") == f"gpu{number:02}" and "text" in one]
        assert mine == [str(n) for n in range(50)], "in the order in which they were said"


def test_what_must_last_is_on_the_disk_before_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[int] = []
    monkeypatch.setattr("hostwright.apply.journal.writing.os.fsync", synced.append)
    journal = begin(tmp_path)
    counts = [len(synced)]
    for event in (
        events.Note("gpu01", "x"),
        events.RoleFinished("gpu01", "cuda", DONE),
        events.HostEnded("gpu01", "changed"),
    ):
        journal(event)
        counts.append(len(synced))
    journal.end(0)
    assert [*counts, len(synced)] == [1, 1, 2, 3, 4]


def test_two_runs_of_one_id_never_share_a_record(tmp_path: Path):
    first, second = begin(tmp_path), begin(tmp_path)
    assert (first.header.run, second.header.run) == ("run1", "run1-2")
    assert first.path != second.path
    first.end(0)
    second.end(0)
    assert lines(second)[0]["run"] == "run1-2"
    with pytest.raises(ValueError, match="not a run ID"):
        begin(tmp_path, run="../run")


def test_after_the_end_nothing_is_recorded(tmp_path: Path):
    journal = record(tmp_path, 3, events.HostEnded("gpu01", "pending"))
    journal(events.Note("gpu01", "late"))
    journal.end(0)
    assert [one["kind"] for one in lines(journal)] == ["run began", "host ended", "run ended"]
    assert lines(journal)[-1]["status"] == 3


@pytest.mark.parametrize(
    ("error", "status", "how", "sentence"),
    [
        (None, 0, "ended", ""),
        (KeyboardInterrupt(), 130, "interrupted", ""),
        (Refused("gpu01", "locked by hunter2"), 1, "ended", "gpu01: locked by ***"),
        (InputError("bad"), 2, "ended", "bad"),
        (ZeroDivisionError("hunter2"), 1, "crashed", "ZeroDivisionError: ***"),
        (BrokenPipeError(32, "Broken pipe"), 141, "interrupted", "the reader of its output is gone"),
        (SystemExit(7), 7, "ended", ""),
        (SystemExit(None), 0, "ended", ""),
        (SystemExit("words"), 1, "ended", ""),
    ],
)
def test_a_run_ends_by_how_its_block_is_left(tmp_path, error: BaseException | None, status, how, sentence):
    journal = begin(tmp_path, secrets=("hunter2",))

    def run() -> None:
        with journal:
            if error:
                raise error

    if error is None:
        run()
    else:
        with pytest.raises(type(error)):
            run()
    end = lines(journal)[-1]
    assert (end["status"], end["how"]) == (status, how)
    assert end["sentence"] == sentence


def test_an_end_that_was_told_stands(tmp_path: Path):
    with begin(tmp_path) as journal:
        journal.end(3)
    assert [one["status"] for one in lines(journal) if one["kind"] == "run ended"] == [3]


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """A full disk, as far as this process can tell: a write is cut short, the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_is_reported_once_and_later_records_are_readable(tmp_path: Path):
    said: list[str] = []
    journal = Journal.begin(tmp_path, HEADER, secrets=[], on_trouble=said.append)
    journal(events.Note("gpu01", "before"))
    with no_file_grows_beyond(journal.path.stat().st_size + 50):
        journal(events.Note("gpu01", "cut short " + "x" * 100))
        journal(events.Note("gpu01", "lost"))
        journal(events.Observed("gpu01", PLAN, Facts({Probe("x"): Answer(0, os.urandom(500).hex())})))
    journal(events.Note("gpu01", "after"))
    journal(events.HostEnded("gpu01", "changed"))
    journal.end(0)
    assert len(said) == 1
    assert str(journal.path) in said[0]
    run = Runs(tmp_path).load("run1")
    assert run.damaged == 1, "the line that was cut short, and no other one"
    assert [one["text"] for one in run.hosts[0].said] == ["before", "after"]
    assert run.hosts[0].result == "changed"
    assert not list((journal.path.parent / "facts").iterdir()), "no half of a file stays"


def test_a_place_that_cannot_be_written_stops_no_run(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    said: list[str] = []
    with Journal.begin(tmp_path / "file", HEADER, secrets=[], on_trouble=said.append) as journal:
        journal(events.Observed("gpu01", PLAN, FACTS))
        journal(events.HostEnded("gpu01", "changed"))
    assert len(said) == 1
    assert "The run goes on" in said[0]
    assert journal.header.run == "run1"


def test_a_record_that_goes_away_stops_no_run(tmp_path: Path):
    said: list[str] = []
    journal = Journal.begin(tmp_path, HEADER, secrets=[], on_trouble=said.append)
    shutil.rmtree(tmp_path / "runs")
    for _ in range(3):
        journal(events.Observed("gpu01", PLAN, FACTS))
    journal.end(0)
    assert len(said) == 1
