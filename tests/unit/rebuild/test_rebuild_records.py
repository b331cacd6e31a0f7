"""Records of rebuilds: kept, told apart, private, and clear about a file that is none."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply.journal import sqlitefile
from hostwright.common.errors import HostwrightError, InputError
from hostwright.rebuild import records
from hostwright.rebuild.rebuild import OUTCOMES, PHASES, WAYS, Rebuild
from hostwright.rebuild.records import Records
from tests.unit.support.audits import HOSTILE
from tests.unit.support.rebuilds import NOW, rebuild

#: adds until it is killed, and says each that was added
WRITER = """
import sys
from pathlib import Path
from tests.unit.support.rebuilds import rebuild
from hostwright.rebuild.records import Records
kept = Records(Path(sys.argv[1]), "inventory")
for number in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])):
    kept.add(rebuild("repair", name=f"gpu{number}"))
    print(number, flush=True)
"""

texts = st.text(max_size=30)
seconds = st.floats(0, 1e6)
stored = st.builds(
    Rebuild,
    host=st.text(st.characters(exclude_categories=("Cs",)), max_size=30),
    run=st.text(st.characters(exclude_categories=("Cs",)), max_size=30),
    at=st.datetimes(min_value=NOW.replace(year=2000, tzinfo=None), max_value=NOW.replace(tzinfo=None),
                    timezones=st.just(UTC)),
    operator=st.just("ada@desk"),
    ways=st.lists(st.sampled_from(WAYS), max_size=3).map(tuple),
    outcome=st.sampled_from(OUTCOMES),
    sentence=st.sampled_from(["", HOSTILE, "it ended"]),
    reasons=st.lists(st.sampled_from([HOSTILE, "it is off"]), max_size=2).map(tuple),
    rules=st.just(("gpu-lost",)),
    phases=st.lists(st.tuples(st.sampled_from(PHASES), seconds), max_size=3).map(tuple),
    total_s=seconds,
)  # fmt: skip


def writer(root: Path, first: int, number: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(first), str(number)],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.lists(stored, max_size=4))
def test_what_is_added_comes_back(tmp_path_factory: pytest.TempPathFactory, many: list[Rebuild]):
    kept = Records(tmp_path_factory.mktemp("state"), "inventory")
    for one in sorted(many, key=lambda one: one.at):
        kept.add(one)
    newest = max((one.at for one in many), default=NOW)
    assert set(kept.all()) == {one for one in many if one.at >= newest - records.KEEP}


def test_hosts_times_and_inventories_are_told_apart(tmp_path: Path):
    kept = Records(tmp_path, "inventory")
    early, late = rebuild("repair", days_ago=9), rebuild("relayer", days_ago=2)
    other = rebuild("repair", name="gpu08", days_ago=5)
    for one in (late, other, early):
        kept.add(one)
    assert kept.of("gpu07") == (early, late)
    assert kept.of("gpu07", NOW - timedelta(days=3)) == (late,)
    assert kept.of("gpu07", (NOW - timedelta(days=2)).astimezone(timezone(timedelta(hours=5)))) == (late,)
    assert kept.all() == (early, other, late)
    assert kept.all(NOW - timedelta(days=6)) == (other, late)
    assert Records(tmp_path, "another").all() == ()


def test_what_is_old_goes(tmp_path: Path):
    kept = Records(tmp_path, "inventory")
    kept.add(rebuild("repair", days_ago=records.KEEP.days + 2))
    assert len(kept.all()) == 1
    kept.add(rebuild("repair", days_ago=0))
    assert [one.at for one in kept.all()] == [NOW]


def test_the_file_is_its_owners_alone_and_reading_makes_none(tmp_path: Path):
    root = tmp_path / "state"
    kept = Records(root, "inventory")
    assert kept.all() == () and kept.of("gpu07") == ()
    assert not root.exists()
    kept.add(rebuild("repair"))
    assert [(path.name, stat.S_IMODE(path.stat().st_mode)) for path in root.iterdir()] == [(records.FILE, 0o600)]
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_what_was_added_survives_a_killed_writer_beside_another(tmp_path: Path):
    beside, killed = writer(tmp_path, 1000, 20), writer(tmp_path, 0, 100_000)
    assert killed.stdout is not None and beside.stdout is not None
    said = {int(killed.stdout.readline()) for _ in range(5)}
    killed.kill()
    said |= {int(line) for line in killed.stdout.read().splitlines()}
    said |= {int(line) for line in beside.communicate()[0].splitlines()}
    assert (killed.wait(), beside.returncode) == (-9, 0)
    found = {int(one.host.removeprefix("gpu")) for one in Records(tmp_path, "inventory").all()}
    assert said <= found and len(found - said) <= 1
    assert set(range(1000, 1020)) <= said
    Records(tmp_path, "inventory").add(rebuild("repair"))


@pytest.mark.parametrize("damage", [b"this was a file\n" * 500, b"SQLite format 3\0" + b"\xaa" * 5000])
def test_a_damaged_file_is_said_and_left_as_it_is(tmp_path: Path, damage: bytes):
    kept = Records(tmp_path, "inventory")
    kept.path.write_bytes(damage)
    for act in (kept.all, lambda: kept.add(rebuild("repair"))):
        with pytest.raises(InputError, match=r"rebuilds\.sqlite: is damaged .*move the file away"):
            act()
    assert kept.path.read_bytes() == damage


@pytest.mark.parametrize(
    "document",
    ["", "[]", '{"host": "gpu07"}', '{"host": 1', "null", "\x00"],
    ids=["none", "list", "part", "cut", "null", "zero"],
)
def test_a_damaged_row_is_an_error(tmp_path: Path, document: str):
    kept = Records(tmp_path, "inventory")
    kept.add(rebuild("repair"))
    with closing(sqlite3.connect(kept.path)) as db, db:
        db.execute("UPDATE rebuild SET document = ?", (document,))
    with pytest.raises(InputError, match="is damaged"):
        kept.all()


def test_another_program_s_file_and_a_newer_one_are_left_alone(tmp_path: Path):
    kept = Records(tmp_path, "inventory")
    with closing(sqlite3.connect(kept.path)) as db, db:
        db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(InputError, match="another program"):
        kept.add(rebuild("repair"))
    with closing(sqlite3.connect(kept.path)) as db, db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(InputError, match="newer Hostwright"):
        kept.all()


def test_hanging_writer_and_bad_path_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept = Records(tmp_path, "inventory")
    kept.add(rebuild("repair"))
    monkeypatch.setattr(sqlitefile, "BUSY_S", 0.05)
    with closing(sqlite3.connect(kept.path)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(HostwrightError, match="another process"):
            kept.add(rebuild("repair"))
    (tmp_path / "file").write_text("")
    with pytest.raises(HostwrightError, match="cannot be used"):
        Records(tmp_path / "file", "inventory").add(rebuild("repair"))
