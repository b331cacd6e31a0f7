"""Limits of containers on lab hosts: which controllers a host's group is given, and what a host says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import cgroups, limits

GROUP = "hostwright-lab/box/gpu01"


def unified(place: Path, controllers: str, given: str = "") -> Path:
    """A hierarchy of cgroup v2, as far as plain files can be one: what is written to a file stays there."""
    place.mkdir()
    (place / "cgroup.controllers").write_text(f"{controllers}\n")
    (place / "cgroup.subtree_control").write_text(f"{given}\n")
    return place


def made(monkeypatch: pytest.MonkeyPatch, *hierarchies: Path) -> list[Path]:
    monkeypatch.setattr(cgroups, "hierarchies", lambda: list(hierarchies))
    return cgroups.create(GROUP)


def test_a_group_of_v2_hands_down_what_limits_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = unified(tmp_path / "unified", "hugetlb memory rdma")
    assert made(monkeypatch, place) == [place / GROUP / "cgroup.procs"]
    assert (place / "cgroup.subtree_control").read_text() == "+memory"


def test_what_is_handed_down_already_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = unified(tmp_path / "unified", "cpu io memory pids", given="memory pids cpu io")
    made(monkeypatch, place)
    assert (place / "cgroup.subtree_control").read_text() == "memory pids cpu io\n"


def test_a_group_of_v1_has_nothing_to_hand_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory").mkdir()
    made(monkeypatch, tmp_path / "memory")
    assert [path.name for path in (tmp_path / "memory").iterdir()] == ["hostwright-lab"]


@pytest.mark.parametrize(
    ("note", "why"),
    [
        ("in force: cgroup v1\n", ""),
        ("in force: cgroup v2\n", ""),
        ("not in force: no cgroup controller for memory\n", "not in force: no cgroup controller for memory"),
        ("", "not in force: the host noted nothing at boot"),
    ],
)
def test_a_host_says_why_it_has_no_limits(note: str, why: str) -> None:
    assert limits.why_not(note) == why
