"""Locks of hosts that cannot carry them: kept, private, whole, and refused to others."""

from __future__ import annotations

import stat
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply.locking import locallocks
from hostwright.common.errors import HostwrightError, InputError, Locked
from hostwright.plan.host.locks import OperatorLock
from tests.unit.support.rebuilds import NOW

INVENTORY = "inventory/hosts.yml"
names = st.text(st.characters(exclude_categories=("C",)), min_size=1, max_size=50)


def lock(host: str = "gpu07", owner: str = "ada@desk", hours: float = 8) -> OperatorLock:
    return OperatorLock(owner, "its BMC refuses the password", host, NOW, NOW + timedelta(hours=hours))


def put(root: Path, one: OperatorLock, **more) -> None:
    locallocks.put(root, INVENTORY, one, now=NOW, **more)


def file_of(root: Path) -> Path:
    (path,) = (root / locallocks.FOLDER).glob("*/*")
    return path


def test_what_is_put_there_is_there_until_it_is_taken_off(tmp_path: Path):
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") is None
    assert locallocks.take_off(tmp_path, INVENTORY, "gpu07", who="ada@desk", now=NOW) is None
    put(tmp_path, lock())
    put(tmp_path, lock("gpu01"))
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") == lock()
    assert locallocks.all_of(tmp_path, INVENTORY) == (lock("gpu01"), lock())
    assert locallocks.all_of(tmp_path, "another") == ()
    assert locallocks.get(tmp_path, "another", "gpu07") is None
    assert locallocks.take_off(tmp_path, INVENTORY, "gpu07", who="ada@desk", now=NOW) == lock()
    assert locallocks.all_of(tmp_path, INVENTORY) == (lock("gpu01"),)


@settings(max_examples=50, deadline=None)
@given(st.lists(names, min_size=1, max_size=5, unique=True))
def test_every_name_of_a_host_is_kept_apart(tmp_path_factory: pytest.TempPathFactory, hosts: list[str]):
    root = tmp_path_factory.mktemp("state")
    for host in hosts:
        put(root, lock(host))
    assert {one.host for one in locallocks.all_of(root, INVENTORY)} == set(hosts)
    assert all(locallocks.get(root, INVENTORY, host) == lock(host) for host in hosts)
    assert {path.parent.parent.name for path in root.rglob("*.json")} == {locallocks.FOLDER}


def test_its_file_is_its_owners_alone_and_nothing_lies_beside_it(tmp_path: Path):
    root = tmp_path / "state"
    put(root, lock())
    put(root, lock(hours=1))
    path = file_of(root)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(one.stat().st_mode) for one in (root, path.parent, path.parent.parent)} == {0o700}


def test_somebody_else_s_is_not_touched_without_force(tmp_path: Path):
    put(tmp_path, lock())
    with pytest.raises(Locked, match="ada@desk"):
        put(tmp_path, lock(owner="bob@desk"))
    with pytest.raises(Locked, match="--force"):
        locallocks.take_off(tmp_path, INVENTORY, "gpu07", who="bob@desk", now=NOW)
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") == lock()
    put(tmp_path, lock(owner="bob@desk"), force=True)
    assert locallocks.take_off(tmp_path, INVENTORY, "gpu07", who="ada@desk", now=NOW, force=True) == lock(
        owner="bob@desk"
    )


def test_an_expired_lock_forbids_nothing(tmp_path: Path):
    put(tmp_path, lock(hours=8))
    later = NOW + timedelta(hours=9)
    refused = locallocks.refusal(tmp_path, INVENTORY, "gpu07", NOW)
    assert "ada@desk" in refused and "its BMC refuses the password" in refused and "invoke unlock" in refused
    assert locallocks.refusal(tmp_path, INVENTORY, "gpu07", later) == ""
    assert locallocks.refusal(tmp_path, INVENTORY, "gpu08", NOW) == ""
    locallocks.put(tmp_path, INVENTORY, lock(owner="bob@desk"), now=later)
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") == lock(owner="bob@desk")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"owner": "ada"}', "x" * 20_000, "\x00\xff"])
def test_a_damaged_file_is_said_and_keeps_its_host_locked(tmp_path: Path, text: str):
    put(tmp_path, lock())
    put(tmp_path, lock("gpu01"))
    path = locallocks._path(tmp_path, INVENTORY, "gpu07")
    path.write_text(text)
    for act in (
        lambda: locallocks.get(tmp_path, INVENTORY, "gpu07"),
        lambda: locallocks.refusal(tmp_path, INVENTORY, "gpu07", NOW),
        lambda: locallocks.all_of(tmp_path, INVENTORY),
        lambda: put(tmp_path, lock()),
        lambda: locallocks.take_off(tmp_path, INVENTORY, "gpu07", who="ada@desk", now=NOW),
    ):
        with pytest.raises(InputError, match=str(path)):
            act()
    assert path.read_text() == text
    assert locallocks.get(tmp_path, INVENTORY, "gpu01") == lock("gpu01")
    assert locallocks.take_off(tmp_path, INVENTORY, "gpu07", who="ada@desk", now=NOW, force=True) is None
    assert locallocks.all_of(tmp_path, INVENTORY) == (lock("gpu01"),)


def test_a_write_that_is_cut_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    put(tmp_path, lock())

    def cut(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", cut)
    with pytest.raises(HostwrightError, match="No space left"):
        put(tmp_path, lock(hours=1))
    assert locallocks.get(tmp_path, INVENTORY, "gpu07") == lock()
    assert file_of(tmp_path).suffix == ".json"


def test_an_unwritable_directory_is_an_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostwrightError, match="cannot be written"):
        locallocks.put(tmp_path / "file", INVENTORY, lock(), now=NOW)
