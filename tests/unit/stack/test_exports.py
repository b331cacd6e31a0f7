"""Files that travel to a machine without a network: whole, with sums and pins, and nothing is downloaded there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hostwright.common.errors import ArtifactError, InputError
from hostwright.stack.store.artifacts import Store, read_pins
from hostwright.stack.store.exporting import export
from hostwright.stack.store.sources import SUMS, Exported, OwnFiles
from tests.unit.stack.test_artifacts import CONTENT, Artifact, Quiet, bring, sum_of

OTHER = b"of the other vendor" * 500
WITHOUT_SUM = Artifact("cuda", "cuda.deb", sha256=None, size=None)
BOTH = (Artifact(), WITHOUT_SUM)


def machine(root: Path) -> Store:
    (root / "stacks").mkdir(parents=True)
    return Store(root / "store", (root / "stacks",))


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """What a machine with a network wrote."""
    vendor = tmp_path / "vendor"
    vendor.mkdir()
    (vendor / "cudnn 8.tgz").write_bytes(CONTENT)
    (vendor / "cuda.deb").write_bytes(OTHER)
    store, to = machine(tmp_path / "online"), tmp_path / "usb stick"
    files = bring(store, *BOTH, source=OwnFiles(vendor))
    export(files, [store.lock_file("tf")], to, Quiet())
    shutil.rmtree(store.root)
    return to


def test_what_was_exported_is_all_that_another_machine_needs(exported: Path, tmp_path: Path) -> None:
    store = machine(tmp_path / "offline")
    files = bring(store, *BOTH, source=Exported(exported))
    assert [(file.came, file.pinned) for file in files] == [("taken", False), ("taken", True)]
    assert store.locate(Artifact()).read_bytes() == CONTENT
    assert read_pins(store.lock_file("tf"))["cuda"].sha256 == sum_of(OTHER)
    again = bring(store, *BOTH, source=Exported(exported))
    assert [(file.came, file.pinned) for file in again] == [("was there", False)] * 2


def test_the_sums_are_those_that_sha256sum_checks(exported: Path) -> None:
    def checked() -> tuple[int, int]:
        done = subprocess.run(["sha256sum", "-c", SUMS], cwd=exported, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.count(": OK\n")

    assert checked() == (0, 2)
    next(exported.glob("??/*/cuda.deb")).write_bytes(b"another")
    assert checked() == (1, 1)


def test_a_file_that_was_damaged_on_its_way_is_refused_and_the_others_come(exported: Path, tmp_path: Path) -> None:
    store = machine(tmp_path / "offline")
    next(exported.glob("??/*/cudnn 8.tgz")).write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(ArtifactError, match="the file has the sha256"):
        bring(store, *BOTH, source=Exported(exported))
    with pytest.raises(ArtifactError, match="is not on this machine"):
        store.locate(Artifact())
    assert read_pins(store.lock_file("tf"))["cuda"].sha256 == sum_of(OTHER)


def test_what_is_not_there_is_not_downloaded(exported: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.run"
    elsewhere.write_bytes(b"new")
    missing = Artifact("driver", "driver.run", (elsewhere.as_uri(),), sum_of(b"new"), 3)
    unknown = Artifact("more", "more.tgz", (elsewhere.as_uri(),), None, None)
    store = machine(tmp_path / "offline")
    with pytest.raises(ArtifactError) as refused:
        bring(store, missing, unknown, source=Exported(exported))
    first, second = str(refused.value).splitlines()
    assert f"does not contain driver.run with the sha256 {sum_of(b'new')}; run `invoke mirror --export DIR`" in first
    assert "does not contain more.tgz; run" in second
    assert not (store.root / sum_of(b"new")[:2]).exists()


def test_a_pin_of_this_machine_goes_before_the_one_that_came(exported: Path, tmp_path: Path) -> None:
    store, own = machine(tmp_path / "offline"), tmp_path / "own"
    own.mkdir()
    (own / "cuda.deb").write_bytes(b"another release")
    bring(store, WITHOUT_SUM, source=OwnFiles(own))
    shutil.rmtree(store.root)
    with pytest.raises(ArtifactError, match=f"does not contain cuda.deb with the sha256 {sum_of(b'another release')}"):
        bring(store, WITHOUT_SUM, source=Exported(exported))


def test_a_later_export_adds_to_an_earlier_one_and_copies_nothing_twice(exported: Path, tmp_path: Path) -> None:
    vendor = tmp_path / "vendor"
    (vendor / "driver.run").write_bytes(b"new")
    store = machine(tmp_path / "again")
    inodes = {path: path.stat().st_ino for path in exported.glob("??/*/*")}
    driver = Artifact("driver", "driver.run", (), sum_of(b"new"), 3)
    export(bring(store, Artifact(), driver, source=OwnFiles(vendor)), [store.lock_file("tf")], exported, Quiet())
    assert {path: path.stat().st_ino for path in inodes} == inodes
    assert len((exported / SUMS).read_text().splitlines()) == 3


def test_a_directory_that_nobody_exported_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"has no {SUMS}"):
        Exported(tmp_path)


def test_a_place_that_cannot_be_written_is_told(exported: Path, tmp_path: Path) -> None:
    store = machine(tmp_path / "again")
    files = bring(store, Artifact(), source=Exported(exported))
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="move the file that is in the way, or give another directory"):
        export(files, [], tmp_path / "file" / "to", Quiet())
