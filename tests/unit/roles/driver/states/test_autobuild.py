"""Whether DKMS builds the driver's module for the next kernel, read by the real program from made-up files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Change
from hostwright.plan.testing import facts_for
from hostwright.standard.roles.driver.states.autobuild import AutoBuild

STATE = AutoBuild("470.256.02")
CONF = "usr/src/nvidia-470.256.02/dkms.conf"
HOOK = "etc/kernel/postinst.d/dkms"
SOUND = {CONF: 'PACKAGE_NAME="nvidia"\nAUTOINSTALL="yes"\n', HOOK: "#!/bin/sh\n"}


def answer(root: Path, files: dict[str, str], *, executable: bool = True) -> str:
    """What the probe prints on a host with these files, without the test's folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
        (root / name).chmod(0o755 if executable else 0o644)
    program = STATE.probes()[0].script.replace("/usr/src", f"{root}/usr/src").replace("/etc/", f"{root}/etc/")
    done = subprocess.run(["/bin/sh", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.replace(str(root), "")


@pytest.mark.parametrize("said", ['AUTOINSTALL="yes"', "AUTOINSTALL=y", "AUTOINSTALL='YES'"])
def test_nothing_is_due_where_it_is_on(tmp_path: Path, said: str) -> None:
    printed = answer(tmp_path, {**SOUND, CONF: said})
    facts = facts_for(STATE, {"AUTOINSTALL": printed})
    assert (STATE.plan(facts), STATE.notes(facts)) == (None, ())


@pytest.mark.parametrize("said", ['AUTOINSTALL="no"\n', "", 'AUTOINSTALL="yes"\nAUTOINSTALL=""\n'])
def test_what_is_off_is_put_on_again(tmp_path: Path, said: str) -> None:
    printed = answer(tmp_path, {**SOUND, CONF: f"PACKAGE_NAME=nvidia\n{said}"})
    change = STATE.plan(facts_for(STATE, {"AUTOINSTALL": printed}))
    assert isinstance(change, Change)
    assert change.have == f"not built for the next kernel: AUTOINSTALL is off in /{CONF}"
    for step in change.steps:
        subprocess.run(["/bin/sh", "-eu", "-c", step.script.replace("/usr/src", f"{tmp_path}/usr/src")], check=True)
    assert answer(tmp_path, {}) == ""
    assert (tmp_path / CONF).read_text().startswith('PACKAGE_NAME=nvidia\nAUTOINSTALL="yes"\n')


@pytest.mark.parametrize(
    ("files", "executable", "told"),
    [
        ({"etc/dkms/nvidia.conf": "AUTOINSTALL=no\n"}, True, "/etc/dkms/nvidia.conf switches AUTOINSTALL off"),
        ({}, False, "/etc/kernel/postinst.d/dkms is missing or not executable"),
    ],
)
def test_what_an_operator_did_is_told_and_stays(
    tmp_path: Path, files: dict[str, str], executable: bool, told: str
) -> None:
    facts = facts_for(STATE, {"AUTOINSTALL": answer(tmp_path, {**SOUND, **files}, executable=executable)})
    assert STATE.plan(facts) is None
    (note,) = STATE.notes(facts)
    assert note.startswith(told)


def test_a_host_without_sources_has_nothing_to_build(tmp_path: Path) -> None:
    assert answer(tmp_path, {"etc/kernel/postinst.d/other": ""}) == ""
