"""Files that users put into their home directories, read by root in a real shell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostwright.common.quoting import sh, sh_file
from hostwright.standard.roles.environment.failures import variables
from hostwright.standard.roles.tensorflow.failures import state
from tests.unit.support.shell import ask

NOBODY = 65534
LINE = "export PATH=/usr/local/cuda-10.1/bin:$PATH\n"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home" / "ann"
    place.mkdir(parents=True)
    os.chown(place, NOBODY, NOBODY)
    return place


def theirs(path: Path, text: str = LINE) -> None:
    path.write_text(text)
    os.chown(path, NOBODY, NOBODY)


def ask_homes(module: str, file: str, home: Path, **values: object) -> list[str]:
    """Return a script's output rows for this home directory."""
    homes = sh("nl='\n'\nhomes() { printf '%%s\\n' %s; }\n", home)
    status, text = ask(homes + sh_file(module, file, **values))
    assert status == 0
    return [line for line in text.split("\n") if str(home.parent) in line]


def assignments(home: Path) -> list[str]:
    return ask_homes(variables.__file__, "variables.sh", home, most=400)


def test_a_users_own_start_file_is_read(home: Path) -> None:
    theirs(home / ".bashrc")
    assert assignments(home) == [f"{home}/.bashrc:1:{LINE.strip()}"]


@pytest.mark.parametrize("leads", ["/proc/kmsg", "/proc/kcore", "/etc/shadow", "/dev/zero", "/proc/self/environ"])
def test_a_link_to_what_is_roots_is_not_followed(home: Path, leads: str) -> None:
    (home / ".bashrc").symlink_to(leads)
    theirs(home / ".profile")
    assert assignments(home) == [f"{home}/.profile:1:{LINE.strip()}"]


def test_pipes_directories_and_files_without_end_are_passed_over(home: Path) -> None:
    os.mkfifo(home / ".bashrc")
    (home / ".zshrc").mkdir()
    theirs(home / ".zshenv", LINE)
    with (home / ".zshenv").open("ab") as file:
        file.truncate(2**40)
    theirs(home / ".profile")
    assert assignments(home) == [f"{home}/.profile:1:{LINE.strip()}"]


def packages(home: Path) -> list[str]:
    return ask_homes(state.__file__, "outside.sh", home)


def dist(home: Path, python: str, name: str) -> Path:
    place = home / ".local/lib" / python / "site-packages" / name
    place.mkdir(parents=True)
    return place.parent


def test_names_with_line_ends_and_escape_codes_are_passed_over(home: Path) -> None:
    site = dist(home, "python3.9", "tensorflow-2.9.0.dist-info")
    dist(home, "python3.9", "numpy-1.2\n/usr.dist-info")
    dist(home, "python3.9", "protobuf-4\x1b]52;c;eA==\x07.dist-info")
    dist(home, "python3\n/etc", "tensorflow-1.0.dist-info")
    assert packages(home) == [f"{site}\ttensorflow-2.9.0.dist-info"]
