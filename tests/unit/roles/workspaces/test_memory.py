"""`workspace.logs` about memory, in a real shell with a made-up Docker and control groups."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.states.facts import read_workspaces
from hostwright.standard.roles.workspaces.verbs.queries import logs_script, rows_of
from tests.unit.roles.workspaces.spaces import answers, facts, recorded, space, states
from tests.unit.support.stubs import stub

DOCKER = """
[ "$1" != -H ] || shift 2
case $1 in
logs) echo "the last line"; exit "${LOGS:-0}" ;;
container) [ -n "${STATE:-}" ] && echo "$STATE" ;;
esac
"""
JUPYTER = WorkspaceEntry("bob", "jupyter", memory="512m")
RUN = WorkspaceEntry("bob", "batch", memory="256m", command=("true",))


def logs(folder: Path, entry: WorkspaceEntry, state: str, events: str = "", file: str = "memory.events", **more: str):
    """Return the output for a workspace with this container state and these events of its control group."""
    group = folder / "4711/root/sys/fs/cgroup" / file
    group.parent.mkdir(parents=True)
    group.write_text(events)
    script = logs_script(space(entry), 100).replace("/proc/", f"{folder}/")
    known = stub(folder, docker=DOCKER) | {"STATE": state, **more}
    return subprocess.run(["/bin/sh", "-c", script], env=known, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("file", "events"),
    [
        ("memory.events", "low 0\nhigh 0\nmax 91\noom 3\noom_kill 2\noom_group_kill 0\n"),
        ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
    ],
)
def test_a_jupyter_whose_kernel_was_ended_says_why(tmp_path: Path, file: str, events: str) -> None:
    """jupyter/help#418: no message. Docker reports it after the container's end; the control group does at once."""
    done = logs(tmp_path, JUPYTER, "4711 false", events, file)
    assert done.stdout.splitlines() == [
        "the last line",
        "workspace x: it took more memory than it may (memory: 512m), and the kernel ended a program of it (a "
        "notebook's kernel, a part of a script): let it take less at once, or give it more (memory: …)",
    ]
    assert done.stderr == ""


def test_a_batch_run_that_went_on_after_it_says_so(tmp_path: Path) -> None:
    """docker-stacks#736: a script continues without its child process, and ends with 0."""
    assert "more memory than it may (memory: 256m)" in logs(tmp_path, RUN, "0 true").stdout.splitlines()[-1]


def test_without_a_limit_it_is_the_hosts_memory(tmp_path: Path) -> None:
    done = logs(tmp_path, WorkspaceEntry("bob", "jupyter"), "4711 false", "oom_kill 1\n")
    assert "it took more memory than the host had left" in done.stdout


@pytest.mark.parametrize(
    ("state", "events"), [("4711 false", "oom 0\noom_kill 0\n"), ("4711 false", ""), ("0 false", ""), ("", "")]
)
def test_whoever_kept_to_it_reads_nothing_of_it(tmp_path: Path, state: str, events: str) -> None:
    done = logs(tmp_path, JUPYTER, state, events)
    assert (done.stdout, done.stderr) == ("the last line\n", "")


def test_the_status_is_that_of_the_log(tmp_path: Path) -> None:
    assert logs(tmp_path, JUPYTER, "4711 false", "oom_kill 1\n", LOGS="4").returncode == 4


def test_the_list_says_that_one_that_does_not_run_ended_for_want_of_memory() -> None:
    """tensorboard#1002."""
    look = read_workspaces(facts(states(), answers(recorded(bob_board={"state": "restarting", "killed": True}))))
    (row,) = [row for row in rows_of("gpu01", (), look) if row.name == "bob-board"]
    assert row.state == "restarting, killed for lack of memory, no longer declared"


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Return a directory that other accounts can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # noqa: PTH101, S103 - what it is for
        yield Path(place)


def test_the_logs_of_a_run_are_read_by_its_owner(tmp_path: Path, open_to_all: Path) -> None:
    """The directory's owner may put a link to root's file there, which the logs would show."""
    folder, secret = open_to_all / "bob", open_to_all / "secret"
    secret.write_text("root's own")
    secret.chmod(0o600)
    folder.mkdir()
    (folder / "batch.json").symlink_to(secret)
    os.chown(folder, 2002, 2002)
    script = logs_script(replace(space(RUN), directory=str(folder)), 100)
    known = stub(tmp_path, docker=DOCKER) | {"STATE": "0 false"}
    done = subprocess.run(["/bin/sh", "-euc", script], env=known, capture_output=True, text=True, check=True)
    assert done.stdout == "the last line\n"
    (folder / "batch.json").unlink()
    (folder / "batch.json").write_text('{"state": "ended"}\n')
    done = subprocess.run(["/bin/sh", "-euc", script], env=known, capture_output=True, text=True, check=True)
    assert done.stdout == '{"state": "ended"}\nthe last line\n'
