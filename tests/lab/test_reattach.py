"""A killed run: the next one, from this or another machine, follows its running job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.config import Machine
from tests.lab.conftest import FrontDoor, on
from tests.places import PROJECT

INVOKE = Path(sys.executable).with_name("invoke")
JOBS = "/var/lib/hostwright/jobs"
#: background processes of a shell ignore Ctrl-C, and so do these tests
HEARS_CTRL_C = ("env", "--default-signal=INT")
#: Starts a controller with another host name and machine id, without records of runs.
ELSEWHERE = ("unshare", "--mount", "--uts", "sh", "-c", 'mount --bind "$0" /etc/machine-id; hostname desk2; exec "$@"')


#: Holds dpkg's lock on the host, so that a step that sets a hold waits.
BUSY = """
systemd-run --quiet --collect --unit=hwtest-dpkg python3 -c "
import fcntl, time
lock = open('/var/lib/dpkg/lock', 'w')
fcntl.lockf(lock, fcntl.LOCK_EX)
time.sleep(3600)"
until grep -q ":$(stat -c %i /var/lib/dpkg/lock) " /proc/locks; do sleep 0.1; done
"""
DONE = "systemctl stop hwtest-dpkg"
STEPS = "cuda: 2 steps"


@pytest.fixture
def door(provisioned: FrontDoor, gpu01: Machine) -> Iterator[FrontDoor]:
    """A host on which one role has two steps; the hold's step waits until ``DONE`` releases dpkg's lock."""
    on(gpu01, "apt-mark unhold cuda-toolkit-11-2; ln -sfn /usr/local/cuda-11.4 /usr/local/cuda")
    on(gpu01, BUSY)
    yield provisioned
    on(gpu01, f"{DONE} || true")
    assert provisioned("provision", "--hosts", "gpu01").returncode == 0


def start(
    door: FrontDoor,
    state: Path,
    before: tuple[str, ...] = (),
    words: tuple[str, ...] = ("provision", "--hosts", "gpu01"),
) -> subprocess.Popen[str]:
    """Start a verb whose output can be read line by line."""
    place = ("--inventory", str(door.lab.inventory.parent))
    return subprocess.Popen(
        [*before, *HEARS_CTRL_C, str(INVOKE), *words, *place],
        cwd=PROJECT,
        env={**os.environ, "HOSTWRIGHT_STATE": str(state), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(run: subprocess.Popen[str], part: str) -> str:
    """Return the first line that contains ``part``; fails if the run ends before that."""
    assert run.stdout is not None
    said = []
    for line in run.stdout:
        said.append(line)
        if part in line:
            return line
    raise AssertionError(f"{part!r} was never said: {''.join(said)}")


def jobs_of(machine: Machine, role: str) -> list[str]:
    return [name for name in on(machine, f"ls -1tr {JOBS}").split() if f"-{role}-" in name]


def test_another_machine_follows_the_job_of_a_killed_run_and_repeats_nothing(
    door: FrontDoor, gpu01: Machine, tmp_path: Path
):
    before = jobs_of(gpu01, "cuda")
    killed = start(door, tmp_path / "here")
    read_until(killed, STEPS)
    (job,) = set(jobs_of(gpu01, "cuda")) - set(before)
    on(gpu01, f"until [ -s {JOBS}/{job}/pid ]; do sleep 0.1; done")
    killed.send_signal(signal.SIGKILL)
    killed.wait()

    machine_id = tmp_path / "machine-id"
    machine_id.write_text("0123456789abcdef0123456789abcdef\n")
    other = start(door, tmp_path / "elsewhere", (*ELSEWHERE, str(machine_id)))
    line = read_until(other, "re-attaching")
    assert job in line
    on(gpu01, DONE)
    out, _ = other.communicate()
    assert other.returncode == 0, out
    assert set(jobs_of(gpu01, "cuda")) - set(before) == {job}, "no second job was needed"
    log = on(gpu01, f"cat {JOBS}/{job}/log")
    nonce = json.loads(on(gpu01, f"cat {JOBS}/{job}/job.json"))["nonce"]
    ends = [line.split()[2:4] for line in log.splitlines() if line.startswith(f"{nonce} end ")]
    assert ends == [["0", "0"], ["1", "0"]]


def test_first_ctrl_c_waits_for_jobs_and_second_leaves_them(door: FrontDoor, gpu01: Machine, tmp_path: Path):
    run = start(door, tmp_path / "here")
    read_until(run, STEPS)
    run.send_signal(signal.SIGINT)
    read_until(run, "starting nothing new")
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate()
    assert run.returncode == 130
    assert "--resume" in out
    resumed = start(door, tmp_path / "here", words=("provision", "--resume"))
    read_until(resumed, "re-attaching")
    on(gpu01, DONE)
    out, _ = resumed.communicate()
    assert resumed.returncode == 0, out


def test_gently_stopped_run_ends_its_jobs_and_lists_the_rest(provisioned: FrontDoor, gpu01: Machine, tmp_path: Path):
    door = provisioned
    on(gpu01, "rm /usr/local/cuda-11.2/lib64/libcudnn_ops_infer.so.8.1.0")
    # so that the base role has a change, and all others wait for it
    on(gpu01, "rm -f /etc/apt/apt.conf.d/52hostwright")
    run = start(door, tmp_path / "here")
    read_until(run, "base: 1 step")
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate()
    assert run.returncode == 1
    assert "remaining changes" in out
    last = jobs_of(gpu01, "base")[-1]
    assert on(gpu01, f"cat {JOBS}/{last}/status").strip() == "0"
    plan = door.json("plan", "--hosts", "gpu01", status=3)["plans"][0]
    assert [role["role"] for role in plan["roles"]] == ["cudnn"]
    assert door("provision", "--hosts", "gpu01").returncode == 0
