"""What tells root what to run: who else may write there. In directories of the test's own, by the real shell."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hostwright.common.quoting import words
from hostwright.standard.roles.base.failures.trust.signatures import FOLDERS, PLACES, WRITABLE, writable
from tests.unit.support.auditcontexts import look_at
from tests.unit.support.shell import ask

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def evidence(folder: Path) -> list[str]:
    """What is found where the folder stands for all of root's."""
    script = WRITABLE.script.replace(words(FOLDERS), words((str(folder),))).replace(
        words(PLACES), words((f"{folder}/no",))
    )
    script = script.replace("! -uid 0", f"! -uid {os.geteuid()}").replace("! -gid 0", f"! -gid {os.getegid()}")
    status, text = ask(script)
    assert status == 0
    return [line.replace(f"{folder}", "") for line in writable(look_at({WRITABLE: text}))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "sources.list.d"
    place.mkdir(mode=0o755)
    for name, mode in (("a.list", 0o644), ("b.list", 0o600), ("c.list", 0o664)):  # the last: root's own group
        (place / name).touch()
        (place / name).chmod(mode)
    (place / "gone").symlink_to("/nowhere")
    return place


def spoiled(path: Path) -> None:
    path.chmod(0o666)


def given_away(path: Path) -> None:
    os.chown(path, NOBODY, -1)


def to_a_group(path: Path) -> None:
    os.chown(path, -1, NOBODY)
    path.chmod(0o664)


def test_what_only_root_may_write_is_no_finding(folder: Path) -> None:
    assert evidence(folder) == []


def test_a_masked_unit_is_no_finding(folder: Path) -> None:
    (folder / "masked.service").symlink_to("/dev/null")
    assert evidence(folder) == []


@as_root
@pytest.mark.parametrize("spoil", [spoiled, given_away, to_a_group])
@pytest.mark.parametrize("which", ["", "a.list"])
def test_a_file_or_its_directory_that_others_may_write_to_is_named(
    folder: Path, spoil: Callable[[Path], None], which: str
) -> None:
    spoil(folder / which)
    (line,) = evidence(folder)
    assert line.startswith(f"/{which} belongs to " if which else " belongs to ")


@as_root
def test_a_link_is_what_it_leads_to(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").touch()
    given_away(tmp_path / "theirs")
    (folder / "linked.list").symlink_to(tmp_path / "theirs")
    (line,) = evidence(folder)
    assert line.startswith("/linked.list belongs to nobody:")


def test_this_machines_own_places_can_be_asked() -> None:
    status, text = ask(WRITABLE.script)
    assert status == 0
    assert all(line.count("\t") == 3 for line in text.splitlines())
