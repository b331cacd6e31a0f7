"""Who may read the records: one operator, or the group of a shared directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hostwright.common.places import PRIVATE_FILE, is_shared, make_folder, write_whole


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    old = os.umask(0o077)
    try:
        folder = tmp_path / "state"
        folder.mkdir()
        yield folder
    finally:
        os.umask(old)


@pytest.mark.parametrize(
    ("given", "shared", "folder", "file"),
    [
        (0o700, False, "0o700", "0o600"),
        (0o755, False, "0o700", "0o600"),
        (0o770, False, "0o700", "0o600"),  # no setgid: files would belong to each user's own group
        (0o2770, True, "0o2770", "0o660"),
        (0o2775, True, "0o2770", "0o660"),
        (0o2777, False, "0o2700", "0o600"),  # world-writable, so not shared
    ],
)
def test_a_setgid_directory_is_shared_whatever_the_umask_is(
    root: Path, given: int, shared: bool, folder: str, file: str
) -> None:
    root.chmod(given)
    make_folder(root / "runs" / "run1")
    write_whole(root / "runs" / "run1" / "facts", b"x")
    write_whole(root / "runs" / "run1" / "key", b"x", PRIVATE_FILE)
    assert is_shared(root) == shared
    assert (mode(root / "runs"), mode(root / "runs/run1")) == (folder, folder)
    assert (mode(root / "runs/run1/facts"), mode(root / "runs/run1/key")) == (file, "0o600")


def test_a_folder_that_must_be_new_is_never_an_existing_one(root: Path) -> None:
    make_folder(root / "a")
    make_folder(root / "a")
    with pytest.raises(FileExistsError):
        make_folder(root / "a", exist_ok=False)
    (root / "file").touch()
    with pytest.raises(FileExistsError):
        make_folder(root / "file")
