"""The program that asks apt once: its preferences, without patterns, and the answers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from testinfra.backend.base import CommandResult

from hostwright.standard.roles.driver.apt_answers import DIST_UPGRADE, OTHER_DRIVERS, POLICY, AptAnswer, apt_answers
from tests.unit.support.standard import targets

NAMES = ("libnvidia-compute-470", "libnvidia-container1", "nvidia-driver", "nvidia-dkms-470", "nvidia-smi", "zsh")
PINS = """\
Explanation: nvidia-* stays
Package: libnvidia-[!c]* libnvidia-co[!n]* zsh nvidia-d?iver nvidia-d?ver
Pin: version *
Pin-Priority: -1

Package: *
Pin: release l=x
Pin-Priority: 600

Package: /^nvidia-/ src:nvidia* *:i386 nvidia-s*"""
EXPANDED = """\
Explanation: nvidia-* stays
Package: hostwright-none hostwright-none libnvidia-compute-470 zsh hostwright-none nvidia-driver hostwright-none
Pin: version *
Pin-Priority: -1

Package: *
Pin: release l=x
Pin-Priority: 600

Package: /^nvidia-/ src:nvidia* *:i386 hostwright-none nvidia-smi
"""
#: of what it is given, apt-get prints the preferences, and the policy is what it is asked for
APT = {
    "apt-config": "echo \"folder='{folder}/pins/'\"",
    "apt-cache": f'case $1 in pkgnames) printf "%s\\n" {" ".join(NAMES)} ;; *) shift 3; echo "$@" ;; esac',
    "apt-get": 'cd "${3#*=}" && cat * && echo "E: $PWD/pins: no" >&2; exit 100',
}


@pytest.fixture
def root_once(tmp_path: Path) -> Any:
    (tmp_path / "pins").mkdir()
    (tmp_path / "programs").mkdir()
    for name, text in APT.items():
        (tmp_path / "programs" / name).write_text(f"#!/bin/sh\n{text.replace('{folder}', str(tmp_path))}\n")
        (tmp_path / "programs" / name).chmod(0o755)

    def run(script: str) -> CommandResult:
        env = {**os.environ, "PATH": f"{tmp_path}/programs:{os.environ['PATH']}"}
        done = subprocess.run(["/bin/sh", "-c", script], env=env, capture_output=True, check=False)
        return CommandResult(None, done.returncode, script, done.stdout.decode(), done.stderr.decode())

    return run


def asked(root_once: Any) -> dict[str, AptAnswer]:
    (target,) = (one for one in targets() if one.name == "tensorflow-2.9")
    return dict(apt_answers(root_once, target.context))


def test_apt_gets_the_names_that_its_patterns_match_in_their_order(root_once: Any, tmp_path: Path) -> None:
    (tmp_path / "pins/ours").write_text(PINS)
    answers = asked(root_once)
    assert set(answers) == {DIST_UPGRADE, POLICY}
    assert answers[DIST_UPGRADE].stdout == EXPANDED
    assert answers[POLICY] == AptAnswer(0, " ".join(OTHER_DRIVERS) + "\n", "")


def test_a_file_with_a_continued_line_stays_as_it_is(root_once: Any, tmp_path: Path) -> None:
    continued = "Package: nvidia-*\n zsh\nPin: version *\nPin-Priority: -1\n"
    (tmp_path / "pins/theirs").write_text(continued)
    assert asked(root_once)[DIST_UPGRADE].stdout == continued


def test_what_apt_complains_of_is_named_where_the_host_has_it(root_once: Any, tmp_path: Path) -> None:
    (tmp_path / "pins/ours").touch()
    assert asked(root_once)[DIST_UPGRADE] == AptAnswer(100, "", f"E: {tmp_path}/pins/pins: no\n")


def test_a_host_without_apt_is_told(root_once: Any, tmp_path: Path) -> None:
    def run(_: str) -> CommandResult:
        return CommandResult(None, 1, "", "", "mktemp: No space left on device\n")

    with pytest.raises(AssertionError, match="apt did not run: mktemp: No space left on device"):
        asked(run)
