"""The kernel's settings are the machine's: labs that come up and go down side by side do not disturb each other."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab import locking, sysctls

LABS = 8
ROUNDS = 40
FORMER = {"net/ipv4/ip_forward": 0, "fs/inotify/max_user_instances": 128}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings as files, with the values of a fresh machine."""
    place = tmp_path / "kernel"
    for name, value in FORMER.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(f"{value}\n")
    monkeypatch.setattr(sysctls, "_path", lambda name: place / name)
    monkeypatch.setattr(locking, "_DIRECTORY", tmp_path / "locks")
    (tmp_path / "locks").mkdir()
    return place


def values(kernel: Path) -> dict[str, int]:
    return {name: int((kernel / name).read_text()) for name in FORMER}


def test_labs_side_by_side_raise_them_and_the_last_restores_them(kernel: Path, tmp_path: Path) -> None:
    root = tmp_path / "labs"

    def lives(lab: str) -> None:
        here = root / lab
        here.mkdir(parents=True)
        for _ in range(ROUNDS):
            (here / "lab.json").write_text("{}")
            sysctls.raise_all(root)
            assert values(kernel) == sysctls.NEEDED
            (here / "lab.json").unlink()
            sysctls.restore_all(root)

    with ThreadPoolExecutor(LABS) as pool:
        list(pool.map(lives, [f"lab{number}" for number in range(LABS)]))
    assert values(kernel) == FORMER
    assert not (root / "sysctl.json").exists()


def test_they_stay_raised_while_a_lab_is_left(kernel: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/lab.json").write_text("{}")
    sysctls.raise_all(tmp_path)
    sysctls.restore_all(tmp_path)
    assert values(kernel) == sysctls.NEEDED
    assert json.loads((tmp_path / "sysctl.json").read_text()) == FORMER
