"""Users at work in a workspace, counted in real processes: the main program and ended processes do not count."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from hostwright.standard.roles.workspaces.declared.workspace import workspaces_of
from hostwright.standard.roles.workspaces.states.arguments import INSIDE, Placed, docker_arguments
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, SpaceContainer, read_workspaces
from tests.unit.roles.workspaces.spaces import LAB_HOST, answers, facts, states
from tests.unit.support.stubs import stub

#: prints a line when all child processes exist, and waits: HERE is the container's first process
JUPYTER = """
import subprocess, sys, time
kernels, dead = int(sys.argv[1]), int(sys.argv[2])
running = [subprocess.Popen(['sleep', '600']) for _ in range(kernels)]
ended = [subprocess.Popen(['true']) for _ in range(dead)]
while any(open(f'/proc/{p.pid}/stat').read().rpartition(')')[2].split()[0] != 'Z' for p in ended): time.sleep(0.01)
print('ready', flush=True)
time.sleep(600)
"""
#: Docker's own first process, which starts the program and adopts orphans
INIT = """
import subprocess, sys, time
open('/proc/self/comm', 'w').write('docker-init')
program = subprocess.Popen([sys.executable, '-c', sys.argv[1], *sys.argv[2:4]], stdout=subprocess.PIPE, text=True)
orphans = [subprocess.Popen(['sleep', '600']) for _ in range(int(sys.argv[4]))]
print(program.stdout.readline(), flush=True)
time.sleep(600)
"""


@contextmanager
def running(*words: str) -> Iterator[int]:
    """Run a first process with child processes, and yield its ID."""
    with subprocess.Popen((sys.executable, "-c", *words), stdout=subprocess.PIPE, process_group=0) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().strip() == b"ready"
            yield process.pid
        finally:
            subprocess.run(("kill", "-9", "--", f"-{process.pid}"), check=True)


def held_of(folder: Path, pid: int, proc: str = "/proc") -> SpaceContainer:
    """Return the host's answer about alice-lab with this first process."""
    line = next(line for line in LAB_HOST.splitlines() if '"/workspace-alice-lab"' in line)
    row = json.dumps({**json.loads(line.partition(" ")[2]), "pid": pid}, separators=(",", ":"))
    docker = f"case $1 in ps) echo id ;; inspect) echo 'container {row}' ;; esac"
    done = subprocess.run(
        ["/bin/sh", "-c", WORKSPACES_PROBE.script.replace("process=/proc", f"process={proc}")],
        env=stub(folder, docker=docker), capture_output=True, text=True, check=True,
    )  # fmt: skip
    held = read_workspaces(facts(states(), answers(done.stdout))).container("alice-lab")
    assert held is not None
    return held


def at_work(folder: Path, pid: int) -> str:
    """Return the description of the work in it."""
    return held_of(folder, pid).at_work


@pytest.mark.parametrize(
    ("kernels", "dead", "said"), [(0, 0, ""), (2, 0, "2 processes"), (0, 3, ""), (1, 3, "1 process")]
)
def test_kernels_are_work_and_what_has_ended_is_not(tmp_path: Path, kernels: int, dead: int, said: str) -> None:
    with running(JUPYTER, str(kernels), str(dead)) as pid:
        assert at_work(tmp_path, pid) == (f"workspace alice-lab of alice ({said})" if said else "")


@pytest.mark.parametrize(("kernels", "orphans", "said"), [(0, 0, ""), (2, 0, "2 processes"), (0, 1, "1 process")])
def test_dockers_own_first_process_has_the_program_below_it(
    tmp_path: Path, kernels: int, orphans: int, said: str
) -> None:
    with running(INIT, JUPYTER, str(kernels), "0", str(orphans)) as pid:
        assert at_work(tmp_path, pid) == (f"workspace alice-lab of alice ({said})" if said else "")


@pytest.mark.parametrize("kind", INSIDE)
def test_nothing_in_a_container_is_roots(kind: str) -> None:
    """Users can change what runs there, and root in a container owns files on the host."""
    more = {"batch": {"command": ("true",)}, "serving": {"versions": {1: ""}, "live": 1}}.get(kind, {})
    entry = WorkspaceEntry("alice", kind, image="a:1", **more)  # type: ignore[arg-type]
    (space,) = workspaces_of({"one": entry}, {"alice": WorkspaceUser(2001)}, "/srv/workspaces", "20000-29999")
    words = docker_arguments(space, Placed(2001, 2002, (), "sha256:1", "a:1", "1"))
    pairs = set(pairwise(words))
    assert {("--user", "2001:2002"), ("--cap-drop", "ALL"), ("--security-opt", "no-new-privileges")} <= pairs
    assert not {"--cap-add", "--privileged", "--device"} & set(words)


def test_what_loses_its_parent_is_taken_away() -> None:
    """notebook#334, rocker-org/ml#45: Jupyter as the first process leaves zombies; sshd does not."""
    users = {"alice": WorkspaceUser(2001)}
    for kind in ("jupyter", "tensorboard", "batch"):
        entry = WorkspaceEntry("alice", kind, image="a:1", command=("true",) if kind == "batch" else ())  # type: ignore[arg-type]
        (space,) = workspaces_of({"one": entry}, users, "/srv/workspaces", "20000-29999")
        assert "--init" in docker_arguments(space, Placed(2001, 2001, (), "sha256:1", "a:1", "1"))


@pytest.mark.parametrize("file", ["memory.events", "memory/memory.oom_control"])
def test_a_jupyter_whose_kernel_was_ended_for_want_of_memory_is_known_while_it_runs(tmp_path: Path, file: str) -> None:
    """jupyter/help#418. Docker 20.10 reports it only after the container's end, which does not come here."""
    for number, (text, known) in enumerate({"oom_kill 0\n": False, "oom 2\noom_kill 12\n": True, "": False}.items()):
        group = tmp_path / str(number) / "4711/root/sys/fs/cgroup" / file
        group.parent.mkdir(parents=True)
        group.write_text(text)
        assert held_of(tmp_path / str(number), 4711, f"{tmp_path}/{number}").killed is known


def test_the_drivers_libraries_in_a_container_are_known_by_their_version(tmp_path: Path) -> None:
    """Libraries of a removed driver are mounts of deleted files."""
    mounts = tmp_path / "4711/mountinfo"
    mounts.parent.mkdir()
    library = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.470.182.03"
    mounts.write_text(
        "610 600 0:52 / / rw,relatime - overlay overlay rw\n"
        f"611 610 8:1 {library}//deleted {library} ro,nosuid,nodev - ext4 /dev/sda1 rw\n"
    )
    assert held_of(tmp_path, 4711, str(tmp_path)).libraries == "470.182.03"
