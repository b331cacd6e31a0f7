"""The end of a batch run: its programs receive the signal and have time to finish; and the kept results."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hostwright.plan.model import Change
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.states.arguments import Placed, docker_arguments
from tests.unit.roles.workspaces.spaces import planned, space, variables
from tests.unit.support.stubs import stub

PLACED = Placed(2002, 2002, (), "sha256:abc", "lab/jupyter:1", "d1")
#: behaviour of a container's init when Docker stops it during the training; the kernel kills the rest with it
INIT = """
import os, pathlib, signal, subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], start_new_session=True)
while not pathlib.Path("begun").exists():
    time.sleep(0.05)
(os.killpg if "TINI_KILL_PROCESS_GROUP" in os.environ else os.kill)(child.pid, signal.SIGTERM)
while (ended := os.wait())[0] != child.pid:
    pass
sys.exit(os.waitstatus_to_exitcode(ended[1]) % 256)
"""
TRAINING = """
import signal, sys, time
def keep(*_):
    time.sleep(0.5)
    open("kept", "w").write("all")
    sys.exit(3)
signal.signal(signal.SIGTERM, keep)
open("begun", "w").close()
signal.pause()
"""


def words_of(**fields: Any) -> tuple[list[str], bool]:
    """Return the container's command, and whether its init signals the whole group."""
    words = list(docker_arguments(space(WorkspaceEntry("bob", "batch", **fields)), PLACED))
    start = words.index("--entrypoint")
    return [words[start + 1], *words[start + 3 :]], "TINI_KILL_PROCESS_GROUP=1" in words


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"script": "echo x >before\npython3 t.py\necho y >after\n"}, 143),
        ({"script": "#!/usr/bin/env bash\npython3 t.py\n"}, 143),
        ({"command": ("bash", "-c", "true; python3 t.py; true")}, 143),
        ({"command": ("python3", "t.py")}, 3),
        ({"script": f"#!{sys.executable}\n{TRAINING}"}, 3),
    ],
    ids=["script", "bash", "command", "program", "python"],
)
def test_a_run_that_is_ended_keeps_what_its_programs_know(tmp_path: Path, fields: Any, status: int) -> None:
    """kubernetes#5585, wyoming-piper#47: only the shell received the signal, and Python was killed with it."""
    (tmp_path / "t.py").write_text(TRAINING)
    (tmp_path / "init").write_text(INIT)
    (tmp_path / "script").write_text(fields.get("script", ""))
    (tmp_path / "script").chmod(0o755)
    words, whole = words_of(**fields)
    words = [word.replace("/run/hostwright/script", str(tmp_path / "script")) for word in words]
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", sys.executable, "init"]
    if subprocess.run([*apart[:5], "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine makes no PID namespaces for its users")
    environment = {"PATH": "/usr/bin:/bin", **({"TINI_KILL_PROCESS_GROUP": "1"} if whole else {})}
    done = subprocess.run([*apart, *words], cwd=tmp_path, env=environment, timeout=60, check=False)
    assert (tmp_path / "kept").read_text() == "all"
    assert not (tmp_path / "after").exists()
    assert done.returncode == status


def environment_of(**fields: Any) -> dict[str, str]:
    words = docker_arguments(space(WorkspaceEntry("bob", "batch", **fields)), PLACED)
    pairs = (word for before, word in pairwise(words) if before == "--env")
    return dict(pair.split("=", 1) for pair in pairs)


@pytest.mark.parametrize("fields", [{"command": ("python3", "t.py")}, {"script": "python3 t.py\n"}], ids=str)
def test_what_a_program_printed_is_there_before_it_ends(tmp_path: Path, fields: Any) -> None:
    """docker/compose#12048: the log had no output while the program ran, and none after a kill."""
    (tmp_path / "t.py").write_text("import signal\nprint('line')\nsignal.pause()\n")
    (tmp_path / "script").write_text(fields.get("script", ""))
    words = [word.replace("/run/hostwright/script", str(tmp_path / "script")) for word in words_of(**fields)[0]]
    environment = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": environment_of(**fields)["PYTHONUNBUFFERED"]}
    run = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert run.stdout is not None
        assert select.select([run.stdout], [], [], 60)[0], "it keeps its output back"
        assert run.stdout.readline() == b"line\n"
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()


def test_whether_python_keeps_its_output_back_is_the_persons_to_say() -> None:
    assert environment_of(command=("true",), environment={"PYTHONUNBUFFERED": ""})["PYTHONUNBUFFERED"] == ""
    jupyter = docker_arguments(space(WorkspaceEntry("bob", "jupyter")), PLACED)
    assert not [word for word in jupyter if word.startswith("PYTHONUNBUFFERED")]


def test_a_script_has_one_stream_for_both_so_that_its_lines_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("echo 1; echo 2 >&2; echo 3\n")
    words = [word.replace("/run/hostwright/script", f"{tmp_path}/script") for word in words_of(script="x\n")[0]]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n2\n3\n", "")


def test_docker_waits_as_long_as_the_documents_say() -> None:
    words = docker_arguments(space(WorkspaceEntry("bob", "jupyter")), PLACED)
    assert words[words.index("--stop-timeout") + 1] == "20"


def test_a_run_that_is_taken_off_tells_first_how_it_ended(tmp_path: Path) -> None:
    """Its unit follows the run and writes batch.json, which has to happen before the removal."""
    plan = planned(variables(a_run=None))["undeclared workspaces"]
    assert isinstance(plan, Change)
    calls = tmp_path / "calls"
    docker = f"""
    echo "$*" >>{calls}
    case "$1 $2" in
    "container inspect") [ -e {tmp_path}/gone ] && exit 1; echo true ;;
    "stop --time") : >{tmp_path}/ended ;;
    "rm -f") : >{tmp_path}/gone ;;
    esac"""
    systemctl = f"""
    case $1 in
    is-active) [ -e {tmp_path}/ended ] && echo told >{tmp_path}/batch.json; [ ! -e {tmp_path}/batch.json ] ;;
    stop) [ -e {tmp_path}/batch.json ] || echo cut >{tmp_path}/batch.json ;;
    esac"""
    script = plan.steps[0].script.replace("/var/lib/hostwright", str(tmp_path)).replace("/etc/systemd", str(tmp_path))
    known = stub(tmp_path, docker=docker, systemctl=systemctl)
    subprocess.run(["/bin/sh", "-euc", script], env=known, check=True, timeout=60)
    assert (tmp_path / "batch.json").read_text() == "told\n"
    assert "stop --time 20 workspace-a-run" in calls.read_text()
