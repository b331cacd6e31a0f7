"""The steps of the driver's installation, where /bin/sh can run them: what is looked at before anything is stopped."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostwright.standard.roles.driver.states import steps as driver_steps
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile, WithDriver
from tests.unit.support.shell import program, run
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")
V = "470.182.03"


def test_work_that_came_since_the_look_stops_the_step_before_anything_is_stopped(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    program(programs, "find", "echo /proc/4711/fd/3")
    program(programs, "systemctl", f'echo "$@" >> {tmp_path}/done')
    text = driver_steps.unload(force=False).partition("busy=\n")[2].replace("/proc/$p/comm", f"{tmp_path}/$p")
    (tmp_path / "4711").write_text("python3\n")
    done = run(f"busy=\n{text}", path=programs)
    assert (done.returncode, done.stdout) == (1, b"hostwright: the kernel module nvidia is in use by: python3 (4711)\n")
    assert not (tmp_path / "done").exists()


def test_services_of_ours_do_not_stop_the_step(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    program(programs, "find", "echo /proc/4711/fd/3")
    program(programs, "systemctl", f'echo "$@" >> {tmp_path}/done')
    text = driver_steps.unload(force=False).partition("busy=\n")[2].partition("for module")[0]
    (tmp_path / "4711").write_text("nv-fabricmanage\n")
    done = run("busy=\n" + text.replace("/proc/$p/comm", f"{tmp_path}/$p"), path=programs)
    assert done.returncode == 0
    assert "stop nvidia-fabricmanager" in (tmp_path / "done").read_text()


@pytest.mark.parametrize("text", [driver_steps.LOAD, driver_steps.unload(force=True), driver_steps.unload(force=False)])
def test_the_scripts_are_posix_sh(text: str) -> None:
    runfile = NvidiaRunfile(STACK.artifact("driver"), V)
    whole = [text, driver_steps.install("/x.run", V, ()), driver_steps.rebuild(V), driver_steps.relink(V)]
    for script in [*whole, *(probe.script for probe in (*WithDriver(runfile, runfile).probes(), *BUSY_PROBES))]:
        done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert done.stderr == ""
        assert done.returncode == 0
