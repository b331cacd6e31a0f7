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


def answer(root: Path, conf: str | None = None) -> str:
    """What the probe prints on a host with this ``dkms.conf``, without the test's folder."""
    if conf is not None:
        (root / CONF).parent.mkdir(parents=True)
        (root / CONF).write_text(conf)
    program = STATE.probes()[0].script.replace("/usr/src", f"{root}/usr/src")
    done = subprocess.run(["/bin/sh", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.replace(str(root), "")


@pytest.mark.parametrize("said", ['AUTOINSTALL="yes"', "AUTOINSTALL=y", "AUTOINSTALL='YES'"])
def test_nothing_is_due_where_it_is_on(tmp_path: Path, said: str) -> None:
    printed = answer(tmp_path, f"PACKAGE_NAME=nvidia\n{said}\n")
    assert STATE.plan(facts_for(STATE, {"AUTOINSTALL": printed})) is None


@pytest.mark.parametrize("said", ['AUTOINSTALL="no"\n', "", 'AUTOINSTALL="yes"\nAUTOINSTALL=""\n'])
def test_what_is_off_is_put_on_again(tmp_path: Path, said: str) -> None:
    printed = answer(tmp_path, f"PACKAGE_NAME=nvidia\n{said}")
    change = STATE.plan(facts_for(STATE, {"AUTOINSTALL": printed}))
    assert isinstance(change, Change)
    assert change.have == f"not built for the next kernel: AUTOINSTALL is off in /{CONF}"
    for step in change.steps:
        subprocess.run(["/bin/sh", "-eu", "-c", step.script.replace("/usr/src", f"{tmp_path}/usr/src")], check=True)
    assert answer(tmp_path) == ""
    assert (tmp_path / CONF).read_text().startswith('PACKAGE_NAME=nvidia\nAUTOINSTALL="yes"\n')


def test_a_host_without_sources_has_nothing_to_build(tmp_path: Path) -> None:
    assert answer(tmp_path) == ""
