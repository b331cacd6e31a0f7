"""Tests of the history's file: mode, several writers, damage, other versions, a full disk."""

from __future__ import annotations

import json
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hostwright.apply.journal import sqlitefile
from hostwright.audit.history import History, Item, schema
from hostwright.audit.history.items import kept
from hostwright.common.errors import HostwrightError, InputError
from tests.unit.audit.history.test_history import LINK, audit, driver, filled, host, on, told, values

WRITER = """
import sys
from pathlib import Path
from tests.unit.audit.history.test_history import History, audit, driver, host
root, name, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for day in range(number):
    own = host(name, readings=[driver(f"{name} {day // 2}")])
    print(History(root).add(audit(day / 1440, own, host("shared", readings=[driver(f"{name} {day}")]))))
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, opened without Hostwright's code."""
    with closing(sqlite3.connect(path)) as db, db:
        yield db


def test_the_file_is_its_owners_alone(tmp_path: Path):
    root = tmp_path / "state" / "hostwright"
    history = filled(root, audit(0, host()))
    with schema.opened(history.path, write=True) as db:
        db.execute("INSERT INTO inventory (place) VALUES ('x')")
        beside = {path.name: mode(path) for path in root.iterdir()}
    assert beside == dict.fromkeys(("history.sqlite", "history.sqlite-wal", "history.sqlite-shm"), 0o600)
    assert mode(root) == 0o700
    assert [path.name for path in root.iterdir()] == ["history.sqlite"]


def test_reading_where_there_is_no_history_leaves_no_file(tmp_path: Path):
    history = History(tmp_path / "state")
    assert history.latest("inventory") == {}
    assert history.ages("inventory") == {}
    assert history.state(1) == {}
    assert not (tmp_path / "state").exists()


def test_several_processes_begin_and_write_at_the_same_time(tmp_path: Path):
    names, number = ("gpu01", "gpu02", "gpu03", "gpu04"), 12
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name, str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4],
        )
        for name in names
    ]  # fmt: skip
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    written = {
        name: list(map(int, process.communicate()[0].split())) for name, process in zip(names, started, strict=True)
    }
    assert [process.returncode for process in started] == [0] * 4
    assert sorted(audit_id for numbers in written.values() for audit_id in numbers) == list(range(1, 4 * number + 1))
    history = History(tmp_path)
    for name, numbers in written.items():
        for day, audit_id in enumerate(numbers):
            assert values(history, audit_id, name) == {f"{name} {day // 2}"}
            assert values(history, audit_id, "shared") == {f"{name} {day}"}
    with raw(history.path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert [path.name for path in tmp_path.iterdir()] == ["history.sqlite"]


def test_a_reader_sees_the_state_before_an_audit_or_after_it(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()))
    with schema.opened(history.path, write=True) as db:
        db.execute("DELETE FROM seen")
        assert history.latest("inventory") == {"gpu01": "desired"}
    assert history.latest("inventory") == {}


def test_an_audit_is_written_whole_or_not_at_all(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()))
    with schema.opened(history.path, write=True) as db:
        db.execute("CREATE TRIGGER stop BEFORE INSERT ON seen BEGIN SELECT raise(ABORT, 'cut off'); END")
    with pytest.raises(InputError, match="cut off"):
        history.add(audit(1, host(readings=[driver("other")])))
    assert told(history) == ["0 status: desired"]


def test_another_writer_that_never_ends_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    history = filled(tmp_path, audit(0, host()))
    monkeypatch.setattr(sqlitefile, "BUSY_S", 0.05)
    with schema.opened(history.path, write=True), pytest.raises(HostwrightError, match="another process"):
        history.add(audit(1, host()))


def test_a_full_disk_is_said_and_leaves_the_history_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    history = filled(tmp_path, audit(0, host()))
    connect = sqlitefile.SqliteFile._connect

    def small(kind: sqlitefile.SqliteFile, path: Path | str) -> sqlite3.Connection:
        db = connect(kind, path)
        db.execute("PRAGMA max_page_count=1")  # SQLite keeps the data, but the file cannot grow
        return db

    many = host(readings=[driver(f"{number}" * 200) for number in range(500)])
    with monkeypatch.context() as patch:
        patch.setattr(sqlitefile.SqliteFile, "_connect", small)
        with pytest.raises(HostwrightError, match="No space left on device; free some space there"):
            history.add(audit(1, many))
    assert told(history) == ["0 status: desired"]
    assert history.add(audit(1, many)) == 2


@pytest.mark.parametrize("damage", ["text", "torn", "overwritten"])
def test_a_damaged_file_is_said_with_what_to_do(tmp_path: Path, damage: str):
    history = filled(tmp_path, audit(0, host(), *(host(f"gpu{number}") for number in range(100))))
    data = history.path.read_bytes()
    history.path.write_bytes(
        {"text": b"this was a history\n" * 500, "torn": data[:5000], "overwritten": data[:100] + b"\xaa" * 60000}[
            damage
        ]
    )
    with pytest.raises(InputError, match=r"history\.sqlite: is damaged .* move the file away"):
        history.add(audit(1, host()))
    with pytest.raises(InputError, match="is damaged"):
        history.latest("inventory")
    history.path.rename(tmp_path / "aside")
    assert history.add(audit(1, host())) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE scope SET layers = 'no JSON'",
        "UPDATE scope SET kept = '7'",
        "PRAGMA writable_schema=ON; UPDATE fact SET have = CAST(x'ff' AS TEXT)",
        "UPDATE audit SET at = 'yesterday'",
        "UPDATE audit SET at = 9e18",
        "UPDATE span SET since = 77",
        "UPDATE span SET until = since",
        "DELETE FROM audit",
    ],
)
def test_rows_that_nobody_wrote_are_damage_and_no_crash(tmp_path: Path, statement: str):
    history = filled(tmp_path, audit(0, host(deviations=(LINK,))), audit(1, host(readings=[driver("b")])))
    with raw(history.path) as db:
        db.executescript(statement)
    calls = (
        lambda: history.latest("inventory"), lambda: history.ages("inventory"), lambda: history.trend("inventory", 90),
        lambda: history.diff("inventory", on(0)), lambda: history.host_history("gpu01", None, "inventory"),
        lambda: history.state(1), lambda: history.add(audit(2, host())),
    )  # fmt: skip
    said = []
    for call in calls:
        try:
            call()
        except InputError as error:
            said.append(str(error))
    assert all("is damaged" in sentence for sentence in said)
    assert said or statement == "UPDATE span SET until = since"


def test_a_newer_form_is_not_touched(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()))
    with raw(history.path) as db:
        db.execute("PRAGMA user_version=99")
    for call in (lambda: history.add(audit(1, host())), lambda: history.latest("inventory")):
        with pytest.raises(InputError, match=r"history\.sqlite: .*newer Hostwright \(schema 99.*HOSTWRIGHT_STATE"):
            call()


def test_an_older_form_is_brought_to_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    history = filled(tmp_path, audit(0, host()))
    next_ = ("ALTER TABLE audit ADD COLUMN operator TEXT NOT NULL DEFAULT ''", "CREATE TABLE added (id INTEGER)")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, next_))
    assert history.latest("inventory") == {"gpu01": "desired"}
    with raw(history.path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
        assert db.execute("SELECT operator FROM audit").fetchall() == [("",)]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    history = filled(tmp_path, audit(0, host()))
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("DROP TABLE seen", "NOT SQL")))
        with pytest.raises(HostwrightError):
            history.latest("inventory")
    assert history.latest("inventory") == {"gpu01": "desired"}


def test_an_empty_file_becomes_a_history_and_anothers_database_does_not(tmp_path: Path):
    history = History(tmp_path)
    history.path.touch()
    assert history.add(audit(0, host())) == 1
    other = History(tmp_path / "other")
    other.path.parent.mkdir()
    with raw(other.path) as db:
        db.execute("CREATE TABLE theirs (id INTEGER)")
    with pytest.raises(InputError, match="a database of another program"):
        other.add(audit(0, host()))


def test_a_place_that_cannot_be_used_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostwrightError, match=r"history\.sqlite: cannot be used"):
        History(tmp_path / "file").add(audit(0, host()))
    (tmp_path / "history.sqlite").mkdir()
    with pytest.raises(HostwrightError, match="cannot be read or written"):
        History(tmp_path).latest("inventory")


def test_what_a_host_says_is_data_and_is_capped(tmp_path: Path):
    hostile = "'; DROP TABLE span; --\" \x00 \x1b[2J \u202e \ud800 ? :name %s"
    wide = "\U0001f4a5" * 1_000_000
    looks = [host(hostile, readings=[driver(text)], deviations=()) for text in (hostile, wide, hostile + "\x00")]
    history = filled(tmp_path, *(audit(day, look) for day, look in enumerate(looks)))
    name = kept(hostile)
    assert name == hostile.replace("\ud800", "\\ud800")
    assert history.latest("inventory") == {name: "desired"}
    assert Item("reading", "driver", "loaded", name, "470.256.02") in history.state(1)[name]
    assert values(history, 2, name) == {wide[:2000]}
    assert values(history, 3, name) == {name + "\x00"}
    assert len(kept("\ud800" * 3000)) == 2000
    assert history.path.stat().st_size < 200_000
    changes = history.host_history(name, None, "inventory").events
    assert [event.before for event in changes if event.kind == "reading"] == [name, wide[:2000]]
    assert json.dumps(history.trend("inventory", 3)[0].versions)
